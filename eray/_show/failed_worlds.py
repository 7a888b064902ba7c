"""Tell of a world that failed what does not depend on how quickly its other processes ended."""

import re

from eray._core.phase import Phase
from eray._core.picture import Picture
from eray._core.topology import World

FIRST = re.compile(r"process (\d+) ")
"""How a cause begins that blames one process."""


def has_failed(picture: Picture, world: World) -> bool:
    """Tell of a cluster that ended whether this world had failed; the cause may not have reached the coordinator."""
    if picture.phase != "ended" or world.phase is Phase.CLOSED:
        return False
    return world.failure is not None or world.phase is Phase.FAILED or _ended_by_a_failure(picture)


def joined_words(picture: Picture, world: World) -> str:
    """Return how many had joined, and of a world that had failed which process was the first to."""
    joined = f"{len(world.processes):,} of {world.process_count:,} joined"
    first = first_failed(picture, world)
    if first is None:
        return joined
    others = "" if world.process_count == 1 else " first, the others ended because of it"
    return f"{joined}; process {first} failed{others}"


def first_failed(picture: Picture, world: World) -> int | None:
    """Return the process that a world had failed by, None where that was no single one, or it had not failed."""
    if not has_failed(picture, world):
        return None
    told = picture.ending.cause if picture.ending is not None and _ended_by_a_failure(picture) else None
    # The head's cause counts: the coordinator may hear of another process first.
    found = FIRST.match(told or world.failure or "")
    return None if found is None else int(found[1])


def _ended_by_a_failure(picture: Picture) -> bool:
    """Tell whether a cluster that is its one world's ended badly."""
    return picture.purpose in ("run", "tasks") and picture.ending is not None and picture.ending.has_failed
