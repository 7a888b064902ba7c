"""Deadlines, pauses and lengths of time as values. They are told the time and never sleep."""

from dataclasses import dataclass
from itertools import pairwise
from math import isfinite
from typing import Self


@dataclass(frozen=True)
class Deadline:
    """A moment until which something may be waited for, on the clock that made it.

    >>> deadline = Deadline.after(30.0, now=100.0)
    >>> deadline.remaining_s(now=110.0), deadline.is_over(now=130.0)
    (20.0, True)
    """

    at: float
    timeout_s: float

    @classmethod
    def after(cls, timeout_s: float, *, now: float) -> Self:
        """Return the deadline ``timeout_s`` seconds from ``now``; a negative timeout is over at once."""
        return cls(at=now + max(timeout_s, 0.0), timeout_s=max(timeout_s, 0.0))

    def remaining_s(self, now: float) -> float:
        """Return the seconds that are left, never below zero."""
        return max(self.at - now, 0.0)

    def is_over(self, now: float) -> bool:
        """Tell whether the moment has come."""
        return now >= self.at


@dataclass(frozen=True)
class Backoff:
    """Pauses that grow by ``factor`` from ``first_s`` to ``limit_s``."""

    first_s: float = 0.05
    limit_s: float = 1.0
    factor: float = 2.0

    def pause_s(self, attempt: int, deadline: Deadline | None = None, now: float = 0.0) -> float:
        """Return how long to pause after failed attempt number ``attempt`` (0, 1, …), within the deadline."""
        pause_s = self.first_s
        for _ in range(attempt):
            pause_s = min(pause_s * self.factor, self.limit_s)
            if pause_s == self.limit_s:
                break
        pause_s = min(pause_s, self.limit_s)
        return pause_s if deadline is None else min(pause_s, deadline.remaining_s(now))


FIRST_POLL_S, POLL_S, LONG_POLL_S = 3.0, 10.0, 30.0
"""How long one call to the coordinator blocks, so how often a waiter hears who is missing."""
SPEAKERS = 32
"""Processes from this index on hardly ever say who is missing, so they ask seldom: 10,000 answers take seconds."""


def poll_s(process_index: int, waited_s: float) -> float:
    """Return how long the next call of a process that has waited for ``waited_s`` seconds blocks."""
    if process_index >= SPEAKERS:
        return LONG_POLL_S
    return FIRST_POLL_S if waited_s < FIRST_POLL_S else POLL_S


UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def elapsed(seconds: float) -> str:
    """Return whole seconds in two units at most: ``3 s``, ``2 min 10 s``, ``1 h 5 min``.

    >>> elapsed(130), elapsed(3900), elapsed(60)
    ('2 min 10 s', '1 h 5 min', '1 min')
    """
    if not isfinite(seconds):
        return "an unknown time"
    rest = int(max(seconds, 0.0))
    for (size, unit), (below, smaller) in pairwise(UNITS):
        if rest >= size:
            more = rest % size // below
            return f"{rest // size} {unit}" + (f" {more} {smaller}" if more else "")
    return f"{rest} s"


def lasted(lead: str, seconds: float, trail: str = "") -> str:
    """Return a length of time between two texts, and nothing at all below one second: ``0 s`` says nothing.

    >>> lasted(" for ", 3.2), lasted(" for ", 0.9)
    (' for 3 s', '')
    """
    return "" if seconds < 1 else f"{lead}{elapsed(seconds)}{trail}"


REPEAT_S = 30.0
"""How soon a line about a wait is said again where nothing changed."""


class Reminder:
    """Decides when a line about one wait is due: at once where it changed, else every 30 s.

    >>> reminder = Reminder(now=0.0)
    >>> [reminder.line("waiting for process 1", now) for now in (3.0, 13.0, 33.0)]
    ['waiting for process 1, 3 s', None, 'waiting for process 1, 33 s']
    """

    def __init__(self, *, now: float, soonest_s: float = 0.0) -> None:
        """The wait begins ``now``. No line is due sooner than ``soonest_s`` after that, or after the line before."""
        self._began, self._said, self._said_at, self._soonest_s = now, "", now, soonest_s

    def line(self, text: str, now: float, more: str = "") -> str | None:
        """Return the text with how long the wait has lasted, and ``more``; None where it need not be said."""
        if now - self._said_at < (REPEAT_S if text + more == self._said else self._soonest_s):
            return None
        self._said, self._said_at = text + more, now
        return f"{text}{lasted(', ', now - self._began)}{more}"
