"""Reserve the resources of a world's processes: a placement group with one bundle for each, bound to its node."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ray.util.placement_group import PlacementGroup, placement_group, remove_placement_group

from eray._core.gang_layout import Ask, Room, Seat, found
from eray._core.timing import Backoff, Deadline, Reminder
from eray._io import clock
from eray._ray.rooms import read_rooms
from eray.errors import PlacementError

if TYPE_CHECKING:
    from eray._ray.client import CoordinatorClient

SAY_S = 10.0
"""How soon a driver is told what it waits for, and again where that changed."""
TRY_S = 5.0
"""How long a group may wait although its resources were free: another world was faster, or the view is old."""
LITTLE = 0.001
"""What a bundle asks of a process that asks for nothing: Ray takes no empty one."""

Choose = Callable[[Sequence[Room]], tuple[Seat, ...] | None]


def place(
    client: "CoordinatorClient", ask: Ask, choose: Choose, deadline: Deadline, say: Callable[[str], None]
) -> tuple[tuple[Seat, ...], PlacementGroup]:
    """Return the seats that ``choose`` finds, and the placement group that holds them.

    Waits while others hold the resources, and says so.

    Raises:
        PlacementError: the cluster has not so much, or the others held it until the deadline.
    """
    backoff, attempt = Backoff(first_s=0.1, limit_s=1.0), 0
    reminder = Reminder(now=clock.monotonic(), soonest_s=SAY_S)
    while True:
        rooms = read_rooms(client)
        if choose([room.whole() for room in rooms]) is None:
            raise PlacementError(str(ask), found(room.whole() for room in rooms), 0.0)
        chosen = choose(rooms)
        now = clock.monotonic()
        if chosen is not None:
            if (group := _reserve(chosen, min(TRY_S, deadline.remaining_s(now)))) is not None:
                return chosen, group
        elif not deadline.is_over(now):
            clock.sleep(backoff.pause_s(attempt, deadline, now))
            attempt += 1
        now = clock.monotonic()
        if deadline.is_over(now):
            raise PlacementError(str(ask), found(rooms), deadline.timeout_s)
        if (line := reminder.line(f"waiting for room for {ask}", now, f": {found(rooms)}")) is not None:
            say(line)


def _reserve(chosen: Sequence[Seat], timeout_s: float) -> PlacementGroup | None:
    bundles = [_bundle(seat) for seat in chosen]
    where = [{"ray.io/node-id": seat.ray_node_id} for seat in chosen]
    group = placement_group(bundles, bundle_label_selector=where)
    ready = False
    try:
        ready = bool(group.wait(max(timeout_s, 0.1)))
    finally:
        if not ready:
            remove_placement_group(group)
    return group if ready else None


def _bundle(seat: Seat) -> dict[str, float]:
    asked = {"CPU": seat.cpus, "GPU": float(seat.gpus)}
    return {name: amount for name, amount in asked.items() if amount} or {"CPU": LITTLE}
