"""What the coordinator answers, computed from its state: plain JSON types, as small for 10,000 processes as for ten.

``done`` tells that what was waited for has come; a waiter also stops at a ``failure``. Few are named, all are counted.
"""

from collections.abc import Collection, Iterator
from itertools import islice
from typing import Any

from eray._core.rendezvous import State
from eray._core.topology import Phase, Process, Topology, World
from eray._core.world import JoinRequest, Stage, WorldState, member_of
from eray.errors import NotJoinedError, StaleGenerationError

NAMED, NAMED_NODES = 32, 20

Answer = dict[str, Any]


def node_answer(state: State, ray_node_id: str) -> Answer:
    """Return the node that has this Ray node."""
    node = next(node for node in state.nodes.values() if node.ray_node_id == ray_node_id)
    return {"node": node.model_dump(mode="json")}


def join_answer(state: State, request: JoinRequest) -> Answer:
    """Return one process's place, or who is awaited for it."""
    world = state.worlds.get(request.world)
    index = request.process_index
    if world is None:
        raise NotJoinedError(request.world, index, request.generation or 1, "the world was forgotten")
    member = world.members[index] if index < world.process_count else None
    seated = member is not None and member.join_id == request.join_id
    if not seated and request.generation is not None and request.generation < world.generation:
        raise StaleGenerationError(request.world, index, request.generation, world.generation)
    place = member.place if member is not None and seated else None
    # One that is not seated waits for an earlier life of the world to end.
    awaited = Stage.JOINED if seated or world.failure is not None else Stage.LEFT
    answer = {
        "done": place is not None,
        "phase": str(world.phase),
        "generation": world.generation if seated else None,
        "process_index": index,
        "process_count": world.process_count,
        "node_rank": None if place is None else place.node_rank,
        "local_index": None if place is None else place.local_index,
        "local_device_ids": None if place is None or place.local_device_ids is None else list(place.local_device_ids),
        "device_rule": None if place is None else place.device_rule,
        "coordinator_address": world.coordinator_address if seated else None,
    }
    return answer | _waiting(world, awaited)


def address_answer(state: State, world: str, generation: int, process_index: int) -> Answer:
    """Return where JAX's coordination service listens, once process 0 has said so."""
    found, _ = member_of(state.worlds.get(world), world, generation, process_index)
    address = found.coordinator_address
    missing = [] if address is not None else [_named(found, 0)]
    return _with_failure(found, {"done": address is not None, "coordinator_address": address}, missing, len(missing))


def stage_answer(state: State, world: str, generation: int, process_index: int, stage: Stage) -> Answer:
    """Return whether all processes have come as far as ``stage``, and who has not.

    Of an earlier generation all have left, or are gone: its last one may ask after the next has begun.
    """
    current = state.worlds.get(world)
    if stage == Stage.LEFT and current is not None and generation < current.generation:
        return {"done": True, "missing": [], "missing_count": 0, "failure": None}
    found, _ = member_of(state.worlds.get(world), world, generation, process_index)
    return {"done": found.all_reached(stage)} | _waiting(found, stage)


def barrier_answer(state: State, world: str, generation: int, process_index: int, name: str, sequence: int) -> Answer:
    """Return whether all have passed a barrier for the ``sequence``-th time, and who has not arrived."""
    found, _ = member_of(state.worlds.get(world), world, generation, process_index)
    barrier = found.barriers.get(name)
    if barrier is None or barrier.done >= sequence:
        # None: finished and forgotten, or never entered because the world had failed.
        return _with_failure(found, {"done": barrier is not None or found.failure is None}, [], 0)
    missing = _first(found, _but(found, barrier.arrived))
    return _with_failure(found, {"done": False}, missing, found.process_count - len(barrier.arrived))


def saving_answer(state: State, world: str, generation: int, process_index: int) -> Answer:
    """Return after which step all processes save (None: at their first), or who has not told where it is.

    ``saves`` is false where there is no step for all: somebody waited in vain (``given_up``), or one has left.
    """
    found, _ = member_of(state.worlds.get(world), world, generation, process_index)
    saving, count = found.saving, found.process_count
    agreed = saving.is_agreed(count)
    off = not agreed and saving.is_off(_left(found))
    missing = [] if agreed else _first(found, _but(found, saving.heard))
    answer = {"done": agreed or off, "saves": agreed, "after": saving.last, "given_up": saving.given_up}
    return _with_failure(found, answer, missing, count - len(saving.heard))


def follow_answer(state: State, world: str, generation: int, process_index: int, warned: bool) -> Answer:
    """Return what a process of a world must hear: its failure, or a preemption of which it was not ``warned``."""
    found, _ = member_of(state.worlds.get(world), world, generation, process_index)
    preemption = _notice(state)
    return _with_failure(found, {"done": preemption is not None and not warned, "preemption": preemption}, [], 0)


def watch_answer(state: State, now: float) -> Answer:
    """Return a short summary of every world (phase, failure, who is awaited and since when), and of the nodes."""
    worlds = [_summary(world, now) for world in state.worlds.values()]
    return {"version": state.version, "preemption": _notice(state), "worlds": worlds} | _nodes(state)


def picture(state: State) -> Topology:
    """Return the topology that everyone may see."""
    ranks = sorted(state.nodes)
    head = (state.job or {}).get("head") or (state.nodes[ranks[0]].name if ranks else None)
    return Topology(
        job=state.job,
        head=head,
        epoch=state.epoch,
        nodes=tuple(state.nodes[rank] for rank in ranks),
        worlds=tuple(_world_picture(world) for world in state.worlds.values()),
        preemption=state.preemption,
    )


AWAITED = {
    Phase.FORMING: Stage.JOINED,
    Phase.PLANNED: Stage.RUNNING,
    Phase.PUBLISHED: Stage.RUNNING,
    Phase.DRAINING: Stage.LEFT,
}
"""How far the processes of a world must come for its next phase; none where nothing is awaited."""


def _nodes(state: State) -> Answer:
    """Return which nodes are lost, and which of `eray run` or `eray up` never came; those of a step need not come."""
    lost = [{"node_rank": rank, "node": node.name} for rank, node in state.nodes.items() if not node.alive]
    names = (state.job or {}).get("nodes", ()) if (state.job or {}).get("purpose") in ("run", "up") else ()
    missing = [name for rank, name in enumerate(names) if rank not in state.nodes]
    awaited = {"names": missing[:NAMED_NODES], "count": len(missing), "expected": len(names)}
    return {"lost_nodes": lost, "awaited_nodes": awaited}


def _summary(world: WorldState, now: float) -> Answer:
    failure = world.failure
    awaited = AWAITED.get(world.phase)
    since = world.timeline[-1][1] if world.timeline else now
    summary = {
        "name": world.name,
        "generation": world.generation,
        "process_count": world.process_count,
        "phase": str(world.phase),
        "awaited": None if awaited is None else awaited.name.lower(),
        "for_how_long_s": max(now - since, 0.0),
        "failed": None
        if failure is None
        else {"process_index": failure.process_index, "node": failure.node, "code": failure.code, "at": failure.at},
        "barriers": [] if failure is not None else list(_open_barriers(world, now)),
    }
    waiting = _with_failure(world, {}, [], 0) if awaited is None else _waiting(world, awaited)
    return summary | waiting


def _open_barriers(world: WorldState, now: float) -> Iterator[Answer]:
    for name, barrier in world.barriers.items():
        if barrier.arrived and barrier.opened_at is not None:
            yield {
                "name": name,
                "missing": _first(world, _but(world, barrier.arrived)),
                "missing_count": world.process_count - len(barrier.arrived),
                "for_how_long_s": max(now - barrier.opened_at, 0.0),
            }


def _waiting(world: WorldState, stage: Stage) -> Answer:
    if world.all_reached(stage):
        return _with_failure(world, {}, [], 0)
    behind = (index for index, member in enumerate(world.members) if member is None or member.stage < stage)
    return _with_failure(world, {}, _first(world, behind), world.process_count - world.reached[stage])


def _with_failure(world: WorldState, answer: Answer, missing: list[Answer], missing_count: int) -> Answer:
    failure = world.failure
    return answer | {
        "missing": missing,
        "missing_count": missing_count,
        "failure": None if failure is None else failure.cause,
        "failure_error": None if failure is None else failure.error,
        "failed_generation": None if failure is None else world.generation,
    }


def _left(world: WorldState) -> Iterator[int]:
    if world.reached[Stage.LEFT]:
        for index, member in enumerate(world.members):
            if member is not None and member.stage == Stage.LEFT:
                yield index


def _notice(state: State) -> Answer | None:
    return None if state.preemption is None else state.preemption.model_dump(mode="json")


def _but(world: WorldState, there: Collection[int]) -> Iterator[int]:
    return (index for index in range(world.process_count) if index not in there)


def _first(world: WorldState, missing: Iterator[int]) -> list[Answer]:
    return [_named(world, index) for index in islice(missing, NAMED)]


def _named(world: WorldState, process_index: int) -> Answer:
    member = world.members[process_index]
    return {
        "process_index": process_index,
        "node": world.node_of(process_index),
        "state": "absent" if member is None else member.state,
    }


def _world_picture(world: WorldState) -> World:
    processes = []
    for index, member in enumerate(world.members):
        if member is None:
            continue
        facts, place = member.facts, member.place
        processes.append(
            Process(
                process_index=index,
                node_rank=facts.node_rank if place is None else place.node_rank,
                node=facts.node,
                local_index=facts.local_index if place is None else place.local_index,
                pid=facts.pid,
                visible=facts.visible,
                local_device_ids=None if place is None else place.local_device_ids,
                device_rule=None if place is None else place.device_rule,
                state=member.state,
            )
        )
    return World(
        name=world.name,
        generation=world.generation,
        process_count=world.process_count,
        phase=world.phase,
        coordinator_address=world.coordinator_address,
        processes=tuple(processes),
        failure=None if world.failure is None else world.failure.cause,
        timeline=world.timeline,
        restarts=world.restarts,
    )
