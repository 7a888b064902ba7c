"""What can happen to the cluster, as values checked where they come in: the input of ``rendezvous.apply``."""

from typing import Annotated, Any

from pydantic import Field
from pydantic.dataclasses import dataclass

from eray._core.topology import Node
from eray._core.world import JoinRequest, Seat, Stage

Name = Annotated[str, Field(min_length=1)]
ProcessIndex = Annotated[int, Field(ge=0)]
Positive = Annotated[int, Field(ge=1)]


@dataclass(frozen=True)
class NodeAdded:
    """A node's supervisor has its Ray node up."""

    node: Node


@dataclass(frozen=True)
class NodeFound:
    """A Ray node, as fields of a Node without its rank: one that is not known yet takes the next."""

    fields: dict[str, Any]


@dataclass(frozen=True)
class NodeLost:
    """A node is gone, and with it its processes."""

    node_rank: int
    reason: str


@dataclass(frozen=True)
class WorldDeclared:
    """A launcher says what will join. ``generation`` None is the next one."""

    name: Name
    process_count: Positive
    generation: Positive | None = None
    layout: tuple[Seat, ...] | None = None


@dataclass(frozen=True)
class Joined:
    """A process asks for its place."""

    request: JoinRequest


@dataclass(frozen=True)
class Published:
    """Process 0 says where JAX's coordination service listens."""

    world: str
    generation: Positive
    process_index: ProcessIndex
    address: Name


@dataclass(frozen=True)
class Reported:
    """A process has come as far as ``stage``."""

    world: str
    generation: Positive
    process_index: ProcessIndex
    stage: Stage


@dataclass(frozen=True)
class ProcessFailed:
    """A process says itself that it cannot go on."""

    world: str
    generation: Positive
    process_index: ProcessIndex
    cause: str


@dataclass(frozen=True)
class ProcessDied:
    """Somebody else noticed that a process is gone; ``code`` 0: it ended well, which is news before it runs."""

    world: str
    generation: Positive
    process_index: ProcessIndex
    cause: str
    code: int | None = None


@dataclass(frozen=True)
class BarrierEntered:
    """A process arrives at a barrier for the ``sequence``-th time (1, 2, …)."""

    world: str
    generation: Positive
    process_index: ProcessIndex
    name: Name
    sequence: Positive


@dataclass(frozen=True)
class Warned:
    """Somebody was told that the job is about to end: Slurm's warning signal, or a preemption."""

    reason: Name


@dataclass(frozen=True)
class StepTold:
    """A process that knows of the preemption tells the last step that it passed, None before its first."""

    world: str
    generation: Positive
    process_index: ProcessIndex
    step: int | None


@dataclass(frozen=True)
class SavingGivenUp:
    """A process waited in vain for the others' steps."""

    world: str
    generation: Positive
    process_index: ProcessIndex


Event = (
    NodeAdded
    | NodeFound
    | NodeLost
    | WorldDeclared
    | Joined
    | Published
    | Reported
    | ProcessFailed
    | ProcessDied
    | BarrierEntered
    | Warned
    | StepTold
    | SavingGivenUp
)
