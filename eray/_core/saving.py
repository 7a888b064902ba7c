"""At which step all processes of a world save, once a preemption was announced.

Each process tells the last step that it has passed, and holds its next one until all have told theirs. What has not
been passed by any of them is still before all of them: they save at the first step after the highest one told. That
also holds where steps are counted in tens, or where a process has not called yet.
"""

import operator
from collections.abc import Iterable
from typing import Any, Self

from eray._core.topology import Model
from eray.errors import UsageError


class Saving(Model):
    """What a world's processes have told; ``last`` is the highest step, None where none has passed any."""

    heard: frozenset[int] = frozenset()
    last: int | None = None
    given_up: bool = False

    def tell(self, process_index: int, step: int | None) -> Self:
        """Return it after a process told its last step. What is told again, or too late, changes nothing."""
        if self.given_up or process_index in self.heard:
            return self
        steps = [each for each in (self.last, step) if each is not None]
        return self.model_copy(update={"heard": self.heard | {process_index}, "last": max(steps, default=None)})

    def give_up(self, process_count: int) -> Self:
        """Return it after a process waited in vain: no process saves, unless all have told meanwhile."""
        return self if self.is_agreed(process_count) else self.model_copy(update={"given_up": True})

    def is_agreed(self, process_count: int) -> bool:
        """Tell whether all have told their step."""
        return len(self.heard) == process_count

    def is_off(self, left: Iterable[int]) -> bool:
        """Tell whether there is no step for all: one waited in vain, or is of those that ``left`` without a word."""
        return self.given_up or any(index not in self.heard for index in left)


class Steps:
    """The steps of one process, and which of them is the one to save at."""

    def __init__(self) -> None:
        self.last: int | None = None
        self._due = False
        self._after: int | None = None
        self._chosen: int | None = None

    def save_after(self, step: int | None) -> None:
        """Save at the first step after ``step``, None for the very first one."""
        self._due, self._after = True, step

    def should_save(self, step: Any) -> bool:
        """Pass a step, and tell whether it is the one. The same step has the same answer again.

        Raises:
            UsageError: it is no whole number, or lower than the one before.
        """
        try:
            number = operator.index(step)
        except TypeError:
            raise UsageError(f"should_save() takes a whole number, the step, not {step!r}") from None
        if self.last is not None and number < self.last:
            raise UsageError(f"should_save({number}) after should_save({self.last}): steps must not go back")
        self.last = number
        if not self._due:
            return False
        if self._chosen is None and (self._after is None or number > self._after):
            self._chosen = number
        return number == self._chosen
