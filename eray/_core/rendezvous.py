"""The coordinator's mind: ``apply(state, event, now) -> state``.

Frozen in, frozen out; the time is told. An event that changes nothing returns the very same state, so that a process
may ask again after a lost answer; one that makes no sense raises an ErayError and changes nothing.
"""

from typing import Any

from pydantic import Field

from eray._core import transitions
from eray._core.events import (
    BarrierEntered,
    Event,
    Joined,
    NodeAdded,
    NodeFound,
    NodeLost,
    ProcessDied,
    ProcessFailed,
    Published,
    Reported,
    SavingGivenUp,
    StepTold,
    Warned,
    WorldDeclared,
)
from eray._core.topology import Model, Node, PreemptionNotice
from eray._core.world import WorldState

KEPT_WORLDS = 64
"""How many worlds are remembered; of more, the oldest that are over are forgotten."""


class State(Model):
    """All that the coordinator knows.

    ``version`` changes with what a watcher cares for (phases, failures, nodes), ``serial`` with every accepted event,
    ``epoch`` with every life of the actor. ``preemption`` is the first notice: it holds for every world, also for
    those that come after it. ``restart_count`` counts the restarts of all worlds, also of those that are forgotten.
    """

    job: dict[str, Any] | None = None
    epoch: int = 1
    version: int = 1
    serial: int = 0
    nodes: dict[int, Node] = Field(default_factory=dict)
    worlds: dict[str, WorldState] = Field(default_factory=dict)
    restart_count: int = 0
    preemption: PreemptionNotice | None = None


def apply(state: State, event: Event, now: float) -> State:
    """Return the state after ``event``.

    Raises:
        ErayError: the event contradicts what is known; the state stays as it was.
    """
    match event:
        case NodeAdded(node):
            return _with_node(state, node)
        case NodeFound(fields):
            return _with_node(state, _ranked(state, fields))
        case NodeLost():
            return _lose_node(state, event, now)
        case WorldDeclared(name):
            world = transitions.declare(state.worlds.get(name), event, now)
        case Joined(request):
            world = transitions.join(state.worlds.get(request.world), event, state.nodes, now)
        case Published(name):
            world = transitions.publish(state.worlds.get(name), event)
        case Reported(name):
            world = transitions.report(state.worlds.get(name), event, now)
        case BarrierEntered(name):
            world = transitions.enter_barrier(state.worlds.get(name), event, now)
        case Warned(reason):
            return _warned(state, reason, now)
        case StepTold(name) | SavingGivenUp(name):
            world = transitions.agree_on_saving(state.worlds.get(name), event)
        case ProcessFailed(name) | ProcessDied(name):
            ended = transitions.end(state.worlds.get(name), event, now)
            return state if ended is None else _with_world(state, ended, now)
    return _with_world(state, world, now)


def milestone(world: WorldState) -> tuple[object, ...]:
    """Return what those who wait for a world wait for: they are woken when it changes, not at every event."""
    passed = world.reached.count(world.process_count)  # stages that all have reached
    saving = world.saving.given_up, world.saving.is_agreed(world.process_count)
    return world.generation, world.phase, passed, world.coordinator_address, world.failure, saving


def _warned(state: State, reason: str, now: float) -> State:
    if state.preemption is not None:
        return state
    notice = PreemptionNotice(at=now, reason=reason)
    return state.model_copy(update={"preemption": notice, "serial": state.serial + 1, "version": state.version + 1})


def _with_world(state: State, world: WorldState, now: float) -> State:
    before = state.worlds.get(world.name)
    if world is before:
        return state
    if not world.timeline or world.timeline[-1][0] != world.phase:
        world = world.model_copy(update={"timeline": (*world.timeline, (world.phase, now))})
    worlds = {**state.worlds, world.name: world}
    if before is None:
        worlds = _forget_oldest(worlds, world.name)
    passed = before is None or milestone(before) != milestone(world)
    update = {"worlds": worlds, "serial": state.serial + 1, "version": state.version + int(passed)}
    if before is not None and before.generation != world.generation and before.restarts[-1:] != world.restarts[-1:]:
        update["restart_count"] = state.restart_count + 1
    return state.model_copy(update=update)


def _forget_oldest(worlds: dict[str, WorldState], newest: str) -> dict[str, WorldState]:
    over = [name for name, world in worlds.items() if world.is_over and name != newest]
    surplus = set(over[: max(len(worlds) - KEPT_WORLDS, 0)])
    return {name: world for name, world in worlds.items() if name not in surplus}


def _with_node(state: State, node: Node) -> State:
    if state.nodes.get(node.node_rank) == node:
        return state
    nodes = {**state.nodes, node.node_rank: node}
    return state.model_copy(update={"nodes": nodes, "serial": state.serial + 1, "version": state.version + 1})


def _ranked(state: State, fields: dict[str, Any]) -> Node:
    for node in state.nodes.values():
        if node.ray_node_id and node.ray_node_id == fields.get("ray_node_id"):
            return node
    ranks = {node.name: rank for rank, node in state.nodes.items()}
    following = max(ranks.values(), default=-1) + 1
    return Node.model_validate(fields | {"node_rank": ranks.get(str(fields.get("name")), following)})


def _lose_node(state: State, event: NodeLost, now: float) -> State:
    node = state.nodes.get(event.node_rank)
    if node is not None:
        state = _with_node(state, node.model_copy(update={"alive": False}))
    name = f"rank {event.node_rank}" if node is None else node.name
    for world in state.worlds.values():
        state = _with_world(state, transitions.lose_node(world, event, name, now), now)
    return state
