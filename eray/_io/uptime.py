"""Tell how long this process runs."""

import os

from eray._io import process


def own_age_s() -> float:
    """Return how long ago this process started, to a hundredth of a second; 0 where the kernel does not tell."""
    started = process.start_time(os.getpid())
    try:
        with open("/proc/uptime", encoding="ascii") as stream:
            uptime_s = float(stream.read().split()[0])
    except OSError:
        return 0.0
    return 0.0 if started is None else max(uptime_s - started / os.sysconf("SC_CLK_TCK"), 0.0)
