"""Whose a signal is: the program's own handlers are kept, and processes that have none are not ended by a warning."""

import contextlib
import ctypes
import os
import signal
import threading
from collections.abc import Callable, Collection, Iterable, Iterator

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
THE_USERS = (signal.SIGUSR1, signal.SIGUSR2)
_ACTION_BYTES = 512  # more than any libc's struct sigaction


@contextlib.contextmanager
def kept_sigterm() -> Iterator[None]:
    """Restore SIGTERM's handler, Python's and the C library's, after the body; in any thread.

    ``ray.init`` sets one in Python, where it is called in the main thread, and one in C (absl's) that prints stacks
    and aborts the process three seconds later, whatever the program's own handler does (Ray 2.60).
    """
    before = signal.getsignal(signal.SIGTERM)
    action = ctypes.create_string_buffer(_ACTION_BYTES)
    libc = ctypes.CDLL(None)
    known = libc.sigaction(signal.SIGTERM, None, action) == 0
    try:
        yield
    finally:
        if before is not None and in_main_thread():
            signal.signal(signal.SIGTERM, before)
        if known:
            libc.sigaction(signal.SIGTERM, action, None)


def in_main_thread() -> bool:
    """Tell whether this is the thread in which Python lets one set handlers."""
    return threading.current_thread() is threading.main_thread()


def catches(pid: int, number: int) -> bool:
    """Tell whether a process has a handler for a signal; False where that cannot be seen."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as stream:
            masks = [line.split()[1] for line in stream if line.startswith("SigCgt:")]
    except OSError:
        return False
    return bool(masks) and bool(int(masks[0], 16) >> (number - 1) & 1)


class Caught:
    """Signals that would end this process, caught instead; one for which the program has a handler stays its own."""

    def __init__(self, take: Callable[[int], object]) -> None:
        """``take`` gets the number, in the main thread, between any two steps of the program: it must not lock."""
        self._take = take
        self._numbers: set[int] = set()

    def catch(self, numbers: Iterable[int]) -> None:
        """Install the handlers, where this is the main thread."""
        if not in_main_thread():
            return
        for number in numbers:
            # Python does not know of handlers in C, such as those of faulthandler.register().
            if signal.getsignal(number) is signal.SIG_DFL and not catches(os.getpid(), number):
                signal.signal(number, self._handle)
                self._numbers.add(number)

    def restore(self, spared: Collection[int] = ()) -> None:
        """Let the signals do again what they did before, but for those that are ``spared``."""
        if not in_main_thread():
            return
        for number in self._numbers.difference(spared):
            if signal.getsignal(number) == self._handle:
                signal.signal(number, signal.SIG_DFL)
        self._numbers.clear()

    def _handle(self, number: int, frame: object) -> None:
        self._take(number)
        if number == signal.SIGTERM:
            signal.signal(number, signal.SIG_DFL)  # it warns once
