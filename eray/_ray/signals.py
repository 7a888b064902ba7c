"""What ends a supervisor from outside: signals, and the word of the ``eray run`` that started its step.

srun kills its step at once on SIGTERM, SIGHUP and a second SIGINT, and passes only SIGUSR1 and SIGUSR2 on (22.05.8),
which are the user's own (``sbatch --signal``) and go on to the world's processes. So the launcher writes a signal's
number into srun's standard input, which srun copies to every task. Its end, when the launcher was killed, counts as
SIGTERM.
"""

import asyncio
import os
import signal
from collections.abc import Callable

HEEDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
THE_USERS = (signal.SIGUSR1, signal.SIGUSR2)
STDIN = 0


class Signals:
    """Calls ``act`` with the number of each signal that ends us, in the event loop; ``led`` by a launcher, or not.

    ``forward`` gets those that are the user's own, for the processes of the world.
    """

    def __init__(self, act: Callable[[int], object], forward: Callable[[int], object], *, led: bool) -> None:
        self._act, self._forward, self._loop = act, forward, asyncio.get_running_loop()
        self.heed()
        if led:
            self._loop.add_reader(STDIN, self._read)

    def heed(self) -> None:
        """Install the handlers; again after Ray was initialised, which puts its own in their place."""
        for number in HEEDED:
            self._loop.add_signal_handler(number, self._act, int(number))
        for number in THE_USERS:
            self._loop.add_signal_handler(number, self._forward, int(number))

    def _read(self) -> None:
        text = os.read(STDIN, 64)
        if not text:
            self._loop.remove_reader(STDIN)
        number = text.strip().decode(errors="replace")
        self._act(int(number) if number.isdigit() else int(signal.SIGTERM))
