"""One process's part in a preemption: what it knows, whom it tells, and at which step it saves."""

import logging
import signal
import threading
from collections.abc import Callable, Iterable
from queue import SimpleQueue
from typing import TYPE_CHECKING

from eray._core.saving import Steps
from eray._io.signals import THE_USERS, Caught
from eray.errors import ConnectionStateError, ErayError

if TYPE_CHECKING:
    from eray._ray.client import SavePoint

logger = logging.getLogger(__name__)

AGREE_S = 30.0
"""How long all processes of a world may take to tell their last step. They do that beside the program."""


class Preemption:
    """Hears of a preemption in one thread, tells of one in another, and settles the step to save at in a third.

    So nothing waits for the program itself, which may be in the middle of a collective of all processes.
    """

    def __init__(self) -> None:
        self.reason: str | None = None
        self._steps, self._stepping = Steps(), threading.Lock()
        self._beginning = threading.Lock()
        self._agree: Callable[[int | None], SavePoint | None] | None = None
        self._stop: Callable[[], None] = lambda: None
        self._words: SimpleQueue[str | None] = SimpleQueue()
        self._caught = Caught(lambda number: self.notify(signal.Signals(number).name))

    def catch(self, names: Iterable[str]) -> None:
        """Take the signals of these names, such as USR1, for a warning, where the program has no handler of its own."""
        self._caught.catch(signal.Signals[f"SIG{name}"] for name in names)

    def serve(
        self,
        *,
        tell: Callable[[str], None],
        agree: "Callable[[int | None], SavePoint | None]",
        stop: Callable[[], None],
    ) -> None:
        """Begin to tell by ``tell``, and to settle the step by ``agree``; both raise once ``stop`` was called."""
        with self._beginning:
            self._agree, self._stop = agree, stop
            is_late = self.reason is not None
            if is_late:
                self._stepping.acquire()
        threading.Thread(target=self._tell_all, args=(tell,), name="eray-warn", daemon=True).start()
        if is_late:
            self._begin()

    def notify(self, what: str) -> None:
        """Tell the cluster that the job is about to end. It never blocks: a signal handler may call it."""
        self._words.put(what)

    def take(self, reason: str) -> None:
        """Take the news that the job is about to end; only the first counts."""
        with self._beginning:
            if self.reason is not None:
                return
            is_served = self._agree is not None
            if is_served:
                self._stepping.acquire()  # who sees the notice does not pass a step before all agree; given back there
            self.reason = reason
        if is_served:
            self._begin()

    def should_save(self, step: int) -> bool:
        """Pass a step, and tell whether all processes save at it; waits while they settle it.

        Raises:
            UsageError: the step is no whole number, or goes back.
        """
        with self._stepping:
            return self._steps.should_save(step)

    def close(self) -> None:
        """End all of it, and give the signals back."""
        self._stop()
        self._words.put(None)
        # After a warning the same one may still be on its way, by another node.
        self._caught.restore(() if self.reason is None else THE_USERS)

    def _begin(self) -> None:
        threading.Thread(target=self._settle, name="eray-save", daemon=True).start()

    def _settle(self) -> None:
        """Settle the step to save at, with the lock that ``_begin``'s caller has taken."""
        assert self._agree is not None
        try:
            point = self._agree(self._steps.last)
            if point is not None:
                self._steps.save_after(point.after)
        except ConnectionStateError:
            return
        except ErayError as exc:
            logger.warning("should_save() stays False: %s", exc)
        finally:
            self._stepping.release()

    def _tell_all(self, tell: Callable[[str], None]) -> None:
        while (what := self._words.get()) is not None:
            try:
                tell(what)
            except ConnectionStateError:
                return
            except ErayError as exc:
                logger.warning("the cluster was not told of %s: %s", what, exc)
