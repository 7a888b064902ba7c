"""One world as the coordinator remembers it: what its processes said, and the steps that change it.

Facts are stored, the phase is computed. ``reached`` counts processes per stage, so that the phase costs the same for
ten processes as for ten thousand; the tests recount it after every event.
"""

from enum import IntEnum
from typing import Any, Self

from pydantic import Field, model_validator

from eray._core.barriers import Barriers
from eray._core.blocks import Blocks
from eray._core.missing import name_missing
from eray._core.saving import Saving
from eray._core.topology import Model, Phase, Restart
from eray.errors import NotJoinedError, StaleGenerationError

MOST_LEFT = 16
"""Processes that had left before a failure, of which it names no more."""


class Stage(IntEnum):
    """How far one process has come."""

    JOINED = 0
    DIALLED = 1
    INITIALISED = 2
    RUNNING = 3
    LEFT = 4


class Facts(Model):
    """What a process says of itself; ``local_index``, ``local_count`` and ``node_rank`` None where it cannot know."""

    node: str
    node_rank: int | None = None
    hostname: str = ""
    local_index: int | None = None
    local_count: int | None = None
    pid: int
    visible: tuple[str, ...] | None = None
    uuids: tuple[str, ...] | None = None
    gpus_on_node: int | None = None
    hardware_count: int | None = None
    in_step: bool = False
    assigned: tuple[str, ...] | None = None
    override: str | None = None
    expected_devices: int | None = None


class JoinRequest(Model):
    """A process asks for its place. ``join_id`` belongs to one call of connect(): asking again with it is harmless."""

    world: str = Field(min_length=1)
    generation: int | None = Field(default=None, ge=1)
    process_index: int = Field(ge=0)
    process_count: int = Field(ge=1)
    join_id: str = Field(min_length=1)
    facts: Facts

    @model_validator(mode="after")
    def _index_is_in_range(self) -> Self:
        if self.process_index >= self.process_count:
            raise ValueError(f"process_index {self.process_index} is not below process_count {self.process_count}")
        return self


class Seat(Model):
    """Where a launcher will start a process that has not joined yet."""

    node_rank: int
    local_index: int
    local_count: int
    node: str

    @model_validator(mode="before")
    @classmethod
    def _row_to_fields(cls, row: Any) -> Any:
        """Accept ``[node_rank, local_index, local_count, node]`` as well."""
        if isinstance(row, list | tuple) and len(row) == len(cls.model_fields):
            return dict(zip(cls.model_fields, row, strict=True))
        return row


class Place(Model):
    """What the plan decided for one process."""

    node_rank: int
    local_index: int
    local_device_ids: tuple[int, ...] | None
    device_rule: str | None


class Member(Model):
    """One process that has joined."""

    join_id: str
    facts: Facts
    place: Place | None = None
    stage: Stage = Stage.JOINED
    failed: bool = False
    dead: bool = False

    @classmethod
    def of(cls, request: JoinRequest) -> Self:
        """Return the process that sent ``request``."""
        return cls(join_id=request.join_id, facts=request.facts)

    @property
    def is_over(self) -> bool:
        """Tell whether nothing more is to be expected of this process."""
        return self.stage == Stage.LEFT or self.failed or self.dead

    @property
    def state(self) -> str:
        """The one word that people see."""
        if self.stage == Stage.LEFT:
            return "left"
        return "dead" if self.dead else "failed" if self.failed else self.stage.name.lower()


class Failure(Model):
    """The first cause of a world's failure. ``error`` is an ErayError as data, where one says it better."""

    cause: str
    at: float
    process_index: int | None = None
    node: str | None = None
    code: int | None = None
    error: dict[str, Any] | None = None


class WorldState(Model):
    """One generation of a world."""

    name: str
    generation: int
    process_count: int
    layout: tuple[Seat, ...] | None = None
    members: Blocks[Member | None]
    reached: tuple[int, ...] = (0,) * len(Stage)
    first_joined_at: float | None = None
    planned: bool = False
    coordinator_address: str | None = None
    failure: Failure | None = None
    gone: Failure | None = None  # one that ended well before it joined: a failure as soon as another process joins
    barriers: Barriers = Field(default_factory=dict)
    passes: int = 0  # of all barriers
    saving: Saving = Saving()
    timeline: tuple[tuple[Phase, float], ...] = ()
    restarts: tuple[Restart, ...] = ()

    @property
    def phase(self) -> Phase:
        """How far the world has come."""
        count = self.process_count
        if self.failure is not None:
            return Phase.FAILED
        if self.reached[Stage.LEFT]:
            return Phase.CLOSED if self.reached[Stage.LEFT] == count else Phase.DRAINING
        if self.reached[Stage.RUNNING] == count:
            return Phase.RUNNING
        if self.coordinator_address is not None:
            return Phase.PUBLISHED
        return Phase.PLANNED if self.planned else Phase.FORMING

    @property
    def is_over(self) -> bool:
        """Tell whether a join without a generation opens the next one."""
        if self.failure is None:
            return self.phase == Phase.CLOSED
        return all(member is None or member.is_over for member in self.members)

    def all_reached(self, stage: Stage) -> bool:
        """Tell whether every process has come at least as far as ``stage``."""
        return self.reached[stage] == self.process_count

    def node_of(self, process_index: int) -> str | None:
        """Return the name of a process's node, from the process or from the launcher, or None."""
        member = self.members[process_index]
        if member is not None:
            return member.facts.node
        return None if self.layout is None else self.layout[process_index].node


def new_world(
    name: str,
    generation: int,
    process_count: int,
    layout: tuple[Seat, ...] | None = None,
    restarts: tuple[Restart, ...] = (),
) -> WorldState:
    """Return a world that nobody has joined; ``restarts`` tell of its earlier generations."""
    return WorldState(
        name=name,
        generation=generation,
        process_count=process_count,
        layout=layout,
        members=Blocks((None,) * process_count),
        restarts=restarts,
    )


def with_member(world: WorldState, process_index: int, member: Member) -> WorldState:
    """Return the world with a new or changed process, its stages counted; a stage never goes back."""
    before = world.members[process_index]
    reached = list(world.reached)
    for stage in range(0 if before is None else before.stage + 1, member.stage + 1):
        reached[stage] += 1
    members = world.members.replaced(process_index, member)
    return world.model_copy(update={"members": members, "reached": tuple(reached)})


def failed(world: WorldState, failure: Failure) -> WorldState:
    """Return the world with its failure. The first cause is kept; that process's exit code may be added later.

    It tells who had left before: what others say of a connection that was closed is explained by that.
    """
    first = world.failure
    if first is None:
        left = [index for index, member in enumerate(world.members) if member and member.stage == Stage.LEFT]
        if left:
            named = [{"process_index": index, "node": world.node_of(index)} for index in left[:MOST_LEFT]]
            cause = f"{failure.cause}; before it {name_missing(named, len(left))} had left"
            failure = failure.model_copy(update={"cause": cause})
        return world.model_copy(update={"failure": failure})
    if first.code is None and failure.code is not None and first.process_index == failure.process_index is not None:
        return world.model_copy(update={"failure": first.model_copy(update={"code": failure.code})})
    return world


def member_of(world: WorldState | None, name: str, generation: int, process_index: int) -> tuple[WorldState, Member]:
    """Return the world of this generation and its process.

    Raises:
        StaleGenerationError: the world lives in a later generation.
        NotJoinedError: the world, the generation or the process is not known.
    """
    if world is None:
        raise NotJoinedError(name, process_index, generation, "the coordinator does not know this world")
    if generation < world.generation:
        raise StaleGenerationError(name, process_index, generation, world.generation)
    if generation > world.generation:
        raise NotJoinedError(name, process_index, generation, f"the world is in generation {world.generation}")
    member = world.members[process_index] if 0 <= process_index < world.process_count else None
    if member is None:
        raise NotJoinedError(name, process_index, generation, f"the world has {world.process_count} processes")
    return world, member
