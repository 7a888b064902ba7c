"""Tell the time. Nothing else in eray reads a clock, so that a test can move it."""

import time
from datetime import UTC, datetime, tzinfo


def monotonic() -> float:
    """Return seconds that only go forward; the zero is arbitrary. For deadlines and durations."""
    return time.monotonic()


def unix() -> float:
    """Return seconds since 1970. For what people read and what outlives a process; it may jump."""
    return time.time()


def zone() -> tzinfo:
    """Return this machine's time zone, as it is now."""
    return datetime.fromtimestamp(unix()).astimezone().tzinfo or UTC


def sleep(seconds: float) -> None:
    """Pause between two attempts."""
    time.sleep(seconds)
