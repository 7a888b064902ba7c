"""The phases of a world."""

from enum import StrEnum


class Phase(StrEnum):
    """How far a world has come. Computed from what its processes reported, never stored."""

    FORMING = "forming"
    PLANNED = "planned"
    PUBLISHED = "published"
    RUNNING = "running"
    DRAINING = "draining"
    CLOSED = "closed"
    FAILED = "failed"


COMPLETE = frozenset({Phase.RUNNING, Phase.DRAINING, Phase.CLOSED})
"""The phases of a world that every process has reached."""

STARTED = COMPLETE | {Phase.FAILED}
"""The phases of a world whose start is over, well or badly."""
