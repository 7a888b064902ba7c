"""What is logged of a cluster: one table of its state changes with their fields, and those that an event makes.

The table is what docs/logging.md shows. Everything logged under a name here has these fields; one that is not known
is left out.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from eray._core.events import Event
    from eray._core.rendezvous import State
    from eray._core.world import WorldState

Change = tuple[str, dict[str, Any]]

STATE_CHANGES: dict[str, tuple[str, ...]] = {
    "node-reported": ("node", "node_rank"),
    "all-reported": ("node_count",),
    "gcs-up": ("node", "node_rank", "gcs_address"),
    "raylet-ready": ("node", "node_rank", "ray_node_id"),
    "coordinator-up": ("node",),
    "node-ready": ("node", "node_rank"),
    "cluster-up": ("node_count",),
    "ray-lost": ("node", "node_rank", "reason"),
    "node-lost": ("node", "node_rank", "reason"),
    "world-declared": ("world", "generation", "process_count"),
    "world-phase": ("world", "generation", "phase", "cause"),
    "process-started": ("world", "generation", "process_index", "node", "child_pid"),
    "process-joined": ("world", "generation", "process_index", "node"),
    "process-running": ("world", "generation", "process_index", "node"),
    "process-left": ("world", "generation", "process_index", "node"),
    "process-failed": ("world", "generation", "process_index", "node", "cause"),
    "process-died": ("world", "generation", "process_index", "node", "code", "cause"),
    "process-ended": ("world", "generation", "process_index", "node", "code", "cause"),
    "restart-begun": ("world", "generation", "process_count", "restart", "cause"),
    "preemption": ("reason",),
    "node-ended": ("node", "node_rank", "code"),
    "cluster-ended": ("node", "code", "cause"),
}


def changes_by(event: "Event", before: "State", after: "State") -> Iterator[Change]:
    """Yield what an event that the coordinator accepted has changed: in its nodes, its worlds, and their processes."""
    for rank, node in after.nodes.items():
        known = before.nodes.get(rank)
        if node.alive and (known is None or not known.alive or known.ray_node_id != node.ray_node_id):
            yield "node-ready", {"node": node.name, "node_rank": rank}
        elif not node.alive and known is not None and known.alive:
            yield "node-lost", {"node": node.name, "node_rank": rank, "reason": getattr(event, "reason", None)}
    if after.preemption is not None and before.preemption is None:
        yield "preemption", {"reason": after.preemption.reason}
    for name, world in after.worlds.items():
        if world is not before.worlds.get(name):
            yield from _world_changes(event, before.worlds.get(name), world)


def _world_changes(event: "Event", before: "WorldState | None", world: "WorldState") -> Iterator[Change]:
    ids = {"world": world.name, "generation": world.generation}
    is_new = before is None or before.generation != world.generation
    if is_new:
        yield "world-declared", {**ids, "process_count": world.process_count}
    for index in _indexes_of(event, world):
        then, now = None if is_new or before is None else before.members[index], world.members[index]
        if now is None:
            continue
        about = {**ids, "process_index": index, "node": now.facts.node}
        cause, code = getattr(event, "cause", None), getattr(event, "code", None)
        if then is None:
            yield "process-joined", about
        if now.failed and not (then and then.failed):
            yield "process-failed", {**about, "cause": cause}
        if now.dead and not (then and then.dead):
            yield "process-died", {**about, "code": code, "cause": cause or getattr(event, "reason", None)}
        if then is not None and now.stage != then.stage and (word := _STAGES.get(now.stage.name)):
            yield word, about
    if is_new or before is None or before.phase != world.phase:
        yield "world-phase", {**ids, "phase": str(world.phase), "cause": world.failure and world.failure.cause}


_STAGES = {"RUNNING": "process-running", "LEFT": "process-left"}


def _indexes_of(event: "Event", world: "WorldState") -> "range | tuple[int, ...]":
    """Return whose process an event is about; only the loss of a node is about several."""
    request = getattr(event, "request", None)
    index = getattr(event if request is None else request, "process_index", None)
    if index is not None:
        return (index,)
    return range(world.process_count) if hasattr(event, "node_rank") else ()
