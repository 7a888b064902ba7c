"""What a supervisor is told from outside: signals, and the word of the ``eray run`` that started its step.

srun kills its step at once on SIGTERM, SIGHUP and a second SIGINT, and passes only SIGUSR1 and SIGUSR2 on (22.05.8),
which are the user's own (``sbatch --signal``) and go on to the world's processes. So the launcher writes a signal's
number into srun's standard input, which srun copies to every task. Its end, when the launcher was killed, counts as
SIGTERM.
"""

import asyncio
import os
import signal
from collections.abc import Callable, Iterable
from enum import StrEnum

from eray._io import clock
from eray._io.signals import ENDING, THE_USERS

STDIN = 0
SAME_S = 5.0
"""A SIGTERM that warns may come twice, from Slurm and by way of the launcher."""


class Meaning(StrEnum):
    """What a signal means to a supervisor."""

    WARNING = "the job is about to end"
    END = "end the cluster"
    USERS = "it is for the world's processes"
    AGAIN = "the same warning, by another way"


class Meanings:
    """Tells what a signal means. ``warnings`` are the names, such as USR1, of those that warn.

    SIGTERM may be one of them: Slurm sends it at the beginning of a preemption's grace, and again at its end.
    """

    def __init__(self, warnings: Iterable[str]) -> None:
        self._warnings = {int(signal.Signals[f"SIG{name}"]) for name in warnings}
        self._warned_at: dict[int, float] = {}

    def of(self, number: int, now: float) -> Meaning:
        """Return the meaning of a signal that came ``now``."""
        if number in THE_USERS:
            return Meaning.WARNING if number in self._warnings else Meaning.USERS
        if number not in self._warnings:
            return Meaning.END
        if number not in self._warned_at:
            self._warned_at[number] = now
            return Meaning.WARNING
        return Meaning.AGAIN if now - self._warned_at[number] < SAME_S else Meaning.END


class Signals:
    """Calls back, in the event loop, with the number of each signal; ``led`` by a launcher, or not.

    ``act`` gets those that end us, ``warn`` those that say that the job is about to end, and ``forward`` those that the
    world's processes may catch too.
    """

    def __init__(
        self,
        act: Callable[[int], object],
        warn: Callable[[int], object],
        forward: Callable[[int], object],
        *,
        warnings: Iterable[str],
        led: bool,
    ) -> None:
        self._act, self._warn, self._forward = act, warn, forward
        self._meanings, self._loop = Meanings(warnings), asyncio.get_running_loop()
        self._rest = b""
        self.heed()
        if led:
            self._loop.add_reader(STDIN, self._read)

    def heed(self) -> None:
        """Install the handlers; again after Ray was initialised, which puts its own in their place."""
        for number in (*ENDING, *THE_USERS):
            self._loop.add_signal_handler(number, self._take, int(number))

    def _take(self, number: int) -> None:
        meaning = self._meanings.of(number, clock.monotonic())
        if meaning is Meaning.END:
            self._act(number)
            return
        if meaning is Meaning.WARNING:
            self._warn(number)
        if meaning is not Meaning.AGAIN:
            self._forward(number)

    def _read(self) -> None:
        text = os.read(STDIN, 64)
        if not text:
            self._loop.remove_reader(STDIN)
            self._act(int(signal.SIGTERM))
            return
        *lines, self._rest = (self._rest + text).split(b"\n")
        for line in lines:
            self._take(int(line) if line.isdigit() else int(signal.SIGTERM))
