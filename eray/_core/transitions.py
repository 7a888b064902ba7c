"""What one event does to one world. Each function returns the world, the same object when nothing changes."""

from collections.abc import Mapping
from dataclasses import replace

from eray._core import barriers
from eray._core.events import (
    BarrierEntered,
    Joined,
    NodeLost,
    ProcessDied,
    ProcessFailed,
    Published,
    Reported,
    SavingGivenUp,
    StepTold,
    WorldDeclared,
)
from eray._core.history import restarts_after
from eray._core.plan import planned
from eray._core.topology import Node
from eray._core.world import (
    Failure,
    JoinRequest,
    Member,
    Stage,
    WorldState,
    failed,
    member_of,
    new_world,
    with_member,
)
from eray.errors import DuplicateProcessError, StaleGenerationError, UsageError, WorldContradictionError


def declare(world: WorldState | None, event: WorldDeclared, now: float) -> WorldState:
    """Open the world that a launcher is about to start, or add its layout to one that began without."""
    if event.layout is not None and len(event.layout) != event.process_count:
        raise UsageError(f"world {event.name!r}: a layout of {len(event.layout)} for {event.process_count} processes")
    generation = event.generation
    if world is None:
        return new_world(event.name, generation or 1, event.process_count, event.layout)
    if generation is None:
        if not world.is_over and world.failure is None:
            known = f"{world.generation} ({world.phase})"
            raise WorldContradictionError(event.name, "the generation", known, "a new one")
        generation = world.generation + 1
    if generation > world.generation:
        return new_world(event.name, generation, event.process_count, event.layout, restarts_after(world, now))
    if generation < world.generation:
        raise WorldContradictionError(event.name, "the generation", str(world.generation), str(generation))
    _require_count(world, event.process_count)
    if event.layout is None or event.layout == world.layout:
        return world
    if world.layout is not None:
        raise WorldContradictionError(event.name, "the layout", "declared", "another one")
    return world.model_copy(update={"layout": event.layout})


def join(world: WorldState | None, event: Joined, nodes: Mapping[int, Node], now: float) -> WorldState:
    """Seat a process, and plan the world when it was the last one.

    Without a generation, a process joins the living one, or opens the next one when the world is over, or has failed
    while it held another process of this index. One that comes while the world drains stays outside until it closed.
    """
    request, index = event.request, event.request.process_index
    if world is None or (request.generation or 0) > world.generation:
        opened = new_world(
            request.world, request.generation or 1, request.process_count, restarts=restarts_after(world, now)
        )
        return _seated(opened, request, nodes, now)
    if request.generation is not None and request.generation < world.generation:
        raise StaleGenerationError(request.world, index, request.generation, world.generation)
    first = world.members[index] if index < world.process_count else None
    if first is not None and first.join_id == request.join_id:
        return world
    if request.generation is None and (world.is_over or (world.failure is not None and first is not None)):
        following = new_world(
            request.world, world.generation + 1, request.process_count, restarts=restarts_after(world, now)
        )
        return _seated(following, request, nodes, now)
    if world.failure is not None:
        return world
    _require_count(world, request.process_count)
    if first is not None and not (request.generation is None and first.stage == Stage.LEFT):
        raise DuplicateProcessError(request.world, index, _identity(first), _identity(Member.of(request)))
    return world if first is not None else _seated(world, request, nodes, now)


def publish(world: WorldState | None, event: Published) -> WorldState:
    """Take the address of JAX's coordination service, which only process 0 of a planned world has."""
    world, member = member_of(world, event.world, event.generation, event.process_index)
    if event.process_index != 0:
        raise UsageError(f"world {event.world!r}: only process 0 publishes an address, not {event.process_index}")
    if world.failure is not None or world.coordinator_address == event.address:
        return world
    if world.coordinator_address is not None:
        raise WorldContradictionError(event.world, "the coordinator address", world.coordinator_address, event.address)
    _require_plan(world, "publish an address")
    world = world.model_copy(update={"coordinator_address": event.address})
    return _advanced(world, 0, member, Stage.DIALLED)


def report(world: WorldState | None, event: Reported, now: float) -> WorldState:
    """Advance a process. Leaving before it ran fails the world: the others would wait for it inside JAX."""
    world, member = member_of(world, event.world, event.generation, event.process_index)
    if event.stage == Stage.LEFT:
        if member.stage < Stage.RUNNING:
            cause = f"process {event.process_index} on {member.facts.node} left before it had started"
            world = failed(world, _failure(world, event.process_index, cause, now))
    elif world.failure is not None:
        return world
    else:
        _require_plan(world, event.stage.name.lower())
    return _advanced(world, event.process_index, member, event.stage)


def end(world: WorldState | None, event: ProcessFailed | ProcessDied, now: float) -> WorldState | None:
    """Fail the world of a process that failed or died before it left; news of another life changes nothing.

    One that ended with 0 fails it where the others would wait for it: it joined and had not started yet, or it never
    joined and another one does. Where none joins it is a plain program.
    """
    index = event.process_index
    if world is None or event.generation != world.generation or not 0 <= index < world.process_count:
        return world
    member, died = world.members[index], isinstance(event, ProcessDied)
    if isinstance(event, ProcessDied) and event.code == 0:
        if member is None:
            return _never_joined(world, event, now)
        if member.stage >= Stage.RUNNING:
            return world
        event = replace(event, cause=f"{event.cause} before it had started")
    if member is not None:
        if not (member.dead if died else member.failed):
            world = with_member(world, index, member.model_copy(update={"dead" if died else "failed": True}))
        if member.stage == Stage.LEFT:
            return world
    verb = "" if not died else " died" if member is not None else " ended before it joined"
    who = f"process {index} on {world.node_of(index) or 'an unknown node'}"
    cause = event.cause if event.cause.startswith(who) else f"{who}{verb}: {event.cause}"
    return failed(world, _failure(world, index, cause, now, event.code if isinstance(event, ProcessDied) else None))


def lose_node(world: WorldState, event: NodeLost, name: str, now: float) -> WorldState:
    """Fail a world that has processes, or awaits some, on a node that is gone."""
    if world.is_over:
        return world
    lost = [index for index in range(world.process_count) if _is_on(world, index, event.node_rank, name)]
    for index in lost:
        member = world.members[index]
        if member is not None and not member.dead:
            world = with_member(world, index, member.model_copy(update={"dead": True}))
    if not lost:
        return world
    return failed(world, Failure(cause=f"node {name} was lost: {event.reason}", node=name, at=now))


def enter_barrier(world: WorldState | None, event: BarrierEntered, now: float) -> WorldState:
    """Let a process arrive at a barrier."""
    world, _ = member_of(world, event.world, event.generation, event.process_index)
    if world.failure is not None:
        return world
    _require_plan(world, "enter a barrier")
    after = barriers.enter(world.barriers, world.process_count, event.process_index, event.name, event.sequence, now)
    if after is world.barriers:
        return world
    passed = not after[event.name].arrived
    return world.model_copy(update={"barriers": after, "passes": world.passes + int(passed)})


def agree_on_saving(world: WorldState | None, event: StepTold | SavingGivenUp) -> WorldState:
    """Take one process's part in the agreement on the step at which all save; one that has left has no part."""
    world, member = member_of(world, event.world, event.generation, event.process_index)
    if world.failure is not None or member.stage == Stage.LEFT:
        return world
    if isinstance(event, StepTold):
        after = world.saving.tell(event.process_index, event.step)
    else:
        after = world.saving.give_up(world.process_count)
    return world if after is world.saving else world.model_copy(update={"saving": after})


def _never_joined(world: WorldState, event: ProcessDied, now: float) -> WorldState:
    """Take that a process ended well and never joined; of several the first counts."""
    if world.gone is not None:
        return world
    cause = f"{event.cause} before it joined; call eray.connect() in each process, or in none"
    gone = _failure(world, event.process_index, cause, now, event.code)
    return failed(world, gone) if world.reached[Stage.JOINED] else world.model_copy(update={"gone": gone})


def _seated(world: WorldState, request: JoinRequest, nodes: Mapping[int, Node], now: float) -> WorldState:
    if world.first_joined_at is None:
        world = world.model_copy(update={"first_joined_at": now})
    world = with_member(world, request.process_index, Member.of(request))
    if world.gone is not None:
        return failed(world, world.gone.model_copy(update={"at": now}))
    return planned(world, nodes, now) if world.all_reached(Stage.JOINED) else world


def _advanced(world: WorldState, process_index: int, member: Member, stage: Stage) -> WorldState:
    if member.stage >= stage:
        return world
    return with_member(world, process_index, member.model_copy(update={"stage": stage}))


def _failure(world: WorldState, process_index: int, cause: str, now: float, code: int | None = None) -> Failure:
    return Failure(cause=cause, at=now, process_index=process_index, node=world.node_of(process_index), code=code)


def _is_on(world: WorldState, process_index: int, node_rank: int, name: str) -> bool:
    member = world.members[process_index]
    if member is None:
        return world.layout is not None and world.layout[process_index].node_rank == node_rank
    rank = member.place.node_rank if member.place is not None else member.facts.node_rank
    return member.stage != Stage.LEFT and (member.facts.node == name if rank is None else rank == node_rank)


def _identity(member: Member) -> str:
    state = f", {member.state}" if member.is_over else ""
    return f"pid {member.facts.pid} on {member.facts.hostname or member.facts.node}{state}"


def _require_count(world: WorldState, process_count: int) -> None:
    if process_count != world.process_count:
        raise WorldContradictionError(world.name, "process_count", str(world.process_count), str(process_count))


def _require_plan(world: WorldState, doing: str) -> None:
    if not world.planned:
        raise UsageError(f"world {world.name!r} is {world.phase}: no process can {doing} before all have joined")
