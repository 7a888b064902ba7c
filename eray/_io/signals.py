"""Keep the program's own SIGTERM handler where a library sets another."""

import contextlib
import ctypes
import signal
import threading
from collections.abc import Iterator

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
        if before is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)
        if known:
            libc.sigaction(signal.SIGTERM, action, None)
