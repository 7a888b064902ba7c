"""Named barriers of a world: any number of times by any number of names, without growing for ever."""

from eray._core.topology import Model
from eray.errors import UsageError

KEPT_BARRIERS = 64
"""How many finished barriers a world remembers. A process can be late by one barrier a thread, not by 64."""


class Barrier(Model):
    """One name: how often all have passed it, and who has arrived for the next time, since when."""

    done: int = 0
    arrived: frozenset[int] = frozenset()
    opened_at: float | None = None


Barriers = dict[str, Barrier]


def enter(barriers: Barriers, process_count: int, process_index: int, name: str, sequence: int, now: float) -> Barriers:
    """Return the barriers after a process arrived at ``name`` for the ``sequence``-th time (1, 2, …).

    Asking again for the same sequence changes nothing. A name that is not (or no longer) known starts at the sequence
    of its first arrival.

    Raises:
        UsageError: the process skips a turn that it never passed.
    """
    barrier = barriers.get(name) or Barrier(done=sequence - 1)
    if sequence <= barrier.done or (process_index in barrier.arrived and sequence == barrier.done + 1):
        return barriers
    if sequence > barrier.done + 1:
        raise UsageError(
            f"barrier {name!r}: process {process_index} comes for turn {sequence}, but turn {barrier.done + 1} is not "
            "passed yet; every process must call its barriers in the same order"
        )
    arrived = barrier.arrived | {process_index}
    if len(arrived) < process_count:
        waiting = Barrier(done=barrier.done, arrived=arrived, opened_at=barrier.opened_at or now)
        return {**barriers, name: waiting}
    others = {key: value for key, value in barriers.items() if key != name}
    return _forget_oldest({**others, name: Barrier(done=sequence)})


def _forget_oldest(barriers: Barriers) -> Barriers:
    finished = [name for name, barrier in barriers.items() if not barrier.arrived]
    for name in finished[:-KEPT_BARRIERS]:
        del barriers[name]
    return barriers
