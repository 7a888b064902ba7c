"""Tell the time. Nothing else in eray reads a clock, so that a test can move it."""

import time


def monotonic() -> float:
    """Return seconds that only go forward; the zero is arbitrary. For deadlines and durations."""
    return time.monotonic()


def unix() -> float:
    """Return seconds since 1970. For what people read and what outlives a process; it may jump."""
    return time.time()


def sleep(seconds: float) -> None:
    """Pause between two attempts."""
    time.sleep(seconds)
