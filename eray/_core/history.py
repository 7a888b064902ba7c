"""What a world remembers of its earlier generations."""

from eray._core.topology import Restart
from eray._core.world import WorldState

KEPT_RESTARTS = 32


def restarts_after(world: WorldState | None, now: float) -> tuple[Restart, ...]:
    """Return the restarts that the generation after ``world`` remembers, oldest first.

    A world that had come to its end is not started again: the next one only has its name.
    """
    if world is None:
        return ()
    failure = world.failure
    if failure is None and world.is_over:
        return world.restarts
    restart = Restart(
        generation=world.generation,
        process_count=world.process_count,
        cause="it was started again" if failure is None else failure.cause,
        process_index=None if failure is None else failure.process_index,
        node=None if failure is None else failure.node,
        code=None if failure is None else failure.code,
        failed_at=None if failure is None else failure.at,
        restarted_at=now,
    )
    return (*world.restarts, restart)[-KEPT_RESTARTS:]
