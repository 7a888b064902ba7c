"""The starts whose head does not answer yet: a supervisor of this machine tells of them, or a mark in the home."""

import socket
from collections.abc import Iterable, Mapping
from typing import Any

from eray._core.access import Door
from eray._io import clock, process

NAMES = ("key", "job", "cluster", "restart", "purpose", "node")


def begun(silent: Iterable[Door], marks: Iterable[Mapping[str, Any]], timeout_s: float) -> list[dict[str, Any]]:
    """Return what is known of each such start: ``NAMES``, and ``began_at`` in unix time.

    Args:
        silent: clusters that live on this machine, whose head does not answer; one hangs that began long ago.
        marks: what `eray run` and `eray up` left in the home (``_cli/start_mark.py``).
        timeout_s: how long a head may take.
    """
    since = clock.unix() - timeout_s
    return [
        *(life for life in map(known_of, silent) if life["began_at"] > since),
        *(dict(mark) for mark in marks if _goes_on(mark)),
    ]


def known_of(life: Door) -> dict[str, Any]:
    """Return what of a life is known before it can be asked; ``began_at`` is 0 where that is not."""
    return {name: getattr(life, name) for name in NAMES} | {"began_at": life.began_at or 0.0}


def _goes_on(mark: Mapping[str, Any]) -> bool:
    """Tell whether a launcher's start still goes on, as far as that is known here; not if another version wrote it."""
    if not mark.keys() >= {*NAMES, "began_at", "timeout_s", "pid", "started"}:
        return False
    if clock.unix() - mark["began_at"] > mark["timeout_s"]:
        return False
    return mark["node"] != socket.gethostname() or process.is_alive(int(mark["pid"]), mark["started"])
