"""Compute for whom a cluster waits: nodes, and processes of each world, as the coordinator names them."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from eray._core.answers import AWAITED
from eray._core.phase import Phase
from eray._core.picture import Picture, Track
from eray._core.sights import timeouts_of
from eray._core.topology import World
from eray._core.world import Stage
from eray._settings import Settings

TO_DO = {
    Stage.JOINED: "join",
    Stage.DIALLED: "dial",
    Stage.INITIALISED: "initialise",
    Stage.RUNNING: "run",
    Stage.LEFT: "leave",
}
PUBLISH = "publish"
"""What process 0 does before the others can dial: it says where JAX's coordination service listens."""
DEFAULTS = timeouts_of(Settings())
STAGES = {str(stage.name).lower(): stage for stage in Stage}
OVER = frozenset({"left", "failed", "dead"})
PATIENCE_S = 10.0
"""How long something is awaited before that is worth a hint."""
LATE = 2 / 3
"""The share of a timeout after which a wait may well end by it, so that people are told how it is raised."""


@dataclass(frozen=True)
class NodeWait:
    """A node that did not report (``awaited``), whose Ray is not ready (``reported``), or that was lost at the start.

    ``since`` is unix time, ``for_s`` seconds up to the picture.
    """

    node_rank: int
    node: str
    state: str
    since: float
    for_s: float


@dataclass(frozen=True)
class Missing:
    """A process that is awaited: ``node`` is None where nobody knows it yet, ``state`` is ``absent`` before it joins.

    ``doing`` is the span of its start that lasts, such as ``import jax``, for ``doing_for_s`` seconds.
    """

    process_index: int
    node: str | None
    state: str
    doing: str | None = None
    doing_for_s: float | None = None


@dataclass(frozen=True)
class WorldWait:
    """A world that waits for the processes ``missing`` to ``stage``: join, publish, dial, initialise, run or leave."""

    world: str
    generation: int
    process_count: int
    stage: str
    since: float
    for_s: float
    missing: tuple[Missing, ...]


@dataclass(frozen=True)
class Waits:
    """All that a cluster waits for, nothing once it ended."""

    nodes: tuple[NodeWait, ...] = ()
    worlds: tuple[WorldWait, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON types."""
        return {"nodes": [asdict(wait) for wait in self.nodes], "worlds": [asdict(wait) for wait in self.worlds]}


def is_long(wait: NodeWait | WorldWait) -> bool:
    """Tell whether a wait lasts so long that people are told what to do about it."""
    return wait.for_s >= PATIENCE_S


def is_late(picture: Picture, variable: str, for_s: float) -> bool:
    """Tell whether a wait may well end by the timeout that a variable sets."""
    return for_s >= LATE * picture.timeouts.get(variable, DEFAULTS[variable])


def raising(picture: Picture, variable: str, for_s: float, between: str = ", ") -> str:
    """Return the advice to raise a timeout where a wait may well end by it, and nothing before."""
    return f"{between}or raise {variable}" if is_late(picture, variable, for_s) else ""


def is_silent(picture: Picture, world: World) -> bool:
    """Tell whether no process of the world of ``eray run`` has called ``eray.connect()``: a plain program need not."""
    known = bool(world.processes or world.restarts or picture.connecting)
    told = any(track.process_index is not None for track in picture.tracks)
    return picture.purpose == "run" and world.phase is Phase.FORMING and not known and not told


def waits_of(picture: Picture) -> Waits:
    """Return for whom a cluster waits, and since when."""
    if picture.phase == "ended":
        return Waits()
    worlds = () if picture.topology is None else picture.topology.worlds
    return Waits(tuple(_nodes(picture)), tuple(wait for world in worlds for wait in _world(picture, world)))


def _nodes(picture: Picture) -> Iterator[NodeWait]:
    for view in picture.nodes:
        if view.state in ("awaited", "reported") or (view.state == "lost" and picture.phase == "starting"):
            since = picture.began_at if view.since is None else view.since
            yield NodeWait(view.node_rank, view.name, view.state, since, max(picture.taken_at - since, 0.0))


def _world(picture: Picture, world: World) -> Iterator[WorldWait]:
    goal = Stage.LEFT if world.phase is Phase.FAILED else AWAITED.get(world.phase)
    if goal is None:
        return
    states = {process.process_index: process.state for process in world.processes}
    stage, behind = _behind(world, states, goal)
    if not behind:
        return
    since = world.timeline[-1][1] if world.timeline else picture.began_at
    wanted = frozenset(behind)
    tracks = {
        track.process_index: track
        for track in picture.tracks
        if track.process_index in wanted and (track.world, track.generation) == (world.name, world.generation)
    }
    nodes = {process.process_index: process.node for process in world.processes}
    missing = tuple(_missing(i, nodes.get(i), states.get(i, "absent"), tracks.get(i), picture.taken_at) for i in behind)
    for_s = max(picture.taken_at - since, 0.0)
    yield WorldWait(world.name, world.generation, world.process_count, stage, since, for_s, missing)


def _behind(world: World, states: dict[int, str], goal: Stage) -> tuple[str, list[int]]:
    """Return the first stage that not all have reached, and those that have not: they hold the others up."""
    indexes = range(world.process_count)
    if world.phase is Phase.FAILED:  # who has not joined will not come any more
        return TO_DO[goal], [index for index in indexes if index in states and states[index] not in OVER]
    if world.phase is Phase.PLANNED and world.coordinator_address is None:
        return PUBLISH, [0]
    reached = {index: STAGES.get(state, Stage.JOINED) for index, state in states.items()}
    least = min((reached.get(index, -1) for index in indexes), default=goal)
    stage = min(Stage(least + 1), goal) if least < Stage.LEFT else goal
    return TO_DO[stage], [index for index in indexes if reached.get(index, -1) < stage]


def _missing(index: int, node: str | None, state: str, track: Track | None, now: float) -> Missing:
    if track is None:
        return Missing(index, node or None, state)
    span = next((span for span in reversed(track.spans) if span.end is None), None)
    node = node or track.node or None
    if span is None:
        return Missing(index, node, state)
    return Missing(index, node, state, span.name, max(now - span.begin, 0.0))
