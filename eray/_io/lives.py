"""Which process wrote something down, and whether it still lives: told by its machine, its pid and when it started."""

import os
import socket
from collections.abc import Mapping
from typing import Any

from eray._io import process


def own_life() -> dict[str, Any]:
    """Return what tells of this process."""
    pid = os.getpid()
    return {"host": socket.gethostname(), "pid": pid, "started": process.start_time(pid)}


def is_here(told: Mapping[str, Any]) -> bool:
    """Tell whether it ran on this machine."""
    return told.get("host") == socket.gethostname()


def is_alive(told: Mapping[str, Any]) -> bool:
    """Tell whether a process of this machine still lives."""
    return process.is_alive(int(told["pid"]), told["started"])
