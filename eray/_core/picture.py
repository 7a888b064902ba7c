"""What people are shown of one cluster, while it runs and afterwards: nodes, worlds, what each did when, how it ended.

The head's supervisor draws it from what it knows itself and from the coordinator. Everything that shows something
(``eray status``, ``report``, ``timeline``) reads it, and nothing else.
"""

from typing import Any, Literal, Self

from pydantic import Field, model_validator

from eray._core.phase import Phase
from eray._core.topology import API_VERSION, Model, Topology

SPANS = (
    "program",
    "environment",
    "supervisor",
    "lock",
    "roll-call",
    "gcs",
    "raylet",
    "import ray",
    "coordinator",
    "ready",
    "attach",
    "import jax",
    "join",
    "port",
    "publish",
    "address",
    "dial",
    "initialise",
    "check",
    "all running",
    "stop",
)
"""What a node's supervisor or a process spends its start on, in the usual order (docs/timeline.md)."""


STOPPED_BY = {130: "SIGINT", 143: "SIGTERM"}


class NodeView(Model):
    """One node as the head sees it.

    Attributes:
        state: ``awaited`` before it reports; ``reported`` while its Ray starts; ``ready``; ``lost``.
        since: unix time of that, None before the first.
        reason: why it is lost.
    """

    node_rank: int = Field(ge=0)
    name: str
    state: Literal["awaited", "reported", "ready", "lost"] = "awaited"
    since: float | None = None
    reason: str = ""


class Span(Model):
    """What was done from ``begin`` to ``end``: unix seconds on the head's clock, ``end`` None while it lasts."""

    name: str
    begin: float
    end: float | None = None

    @model_validator(mode="after")
    def _ends_after_its_begin(self) -> Self:
        if self.end is not None and self.end < self.begin:
            raise ValueError(f"{self.name} ends before it begins")
        return self


class Track(Model):
    """What a node's supervisor did, or one process of a world where ``process_index`` is not None."""

    node: str
    node_rank: int | None = None
    world: str | None = None
    generation: int | None = None
    process_index: int | None = None
    spans: tuple[Span, ...] = ()


class Ending(Model):
    """How the cluster ended: the exit code that counts, and the first cause where that was a failure."""

    at: float
    code: int
    cause: str | None = None

    @property
    def has_failed(self) -> bool:
        """Whether it ended badly."""
        return self.code != 0 and not self.was_stopped

    @property
    def was_stopped(self) -> bool:
        """Whether somebody ended it by a signal, and nothing had failed."""
        return self.code in STOPPED_BY and self.cause is None


class Queued(Model):
    """What Slurm's queue says of a job: ``state`` and ``reason`` in Slurm's words, and how often it was requeued."""

    state: str
    reason: str = ""
    restart: int = Field(default=0, ge=0)

    def __str__(self) -> str:
        return self.state if self.reason in ("", "None") else f"{self.state} ({self.reason})"


class Picture(Model):
    """One cluster at the unix time ``taken_at``.

    Attributes:
        phase: ``starting`` until every node is ready for the first time, then ``up``; ``ended``.
        purpose: ``run``, ``up`` or ``tasks``: what started it; ``foreign`` where that was not eray.
        topology: the coordinator's; None before there is one.
        connecting: ranks of the nodes on which a process has called ``eray.connect()``.
        timeouts: seconds by the variable that sets them: how long the head and its processes wait for others.
        environment: the variables that decided, without secrets, as the head saw them.
        remarks: what the head said to people, oldest first: (unix time, text).
        queued: a later life of an ended cluster's job, which Slurm has requeued; None where there is none, or nobody
            asked.
    """

    api_version: int = API_VERSION
    taken_at: float
    began_at: float
    phase: Literal["starting", "up", "ended"]
    key: str
    job: str | None = None
    restart: int = 0
    cluster: str = ""
    purpose: str = "run"
    head: str
    nodes: tuple[NodeView, ...] = ()
    topology: Topology | None = None
    tracks: tuple[Track, ...] = ()
    ending: Ending | None = None
    connecting: tuple[int, ...] = ()
    timeouts: dict[str, float] = Field(default_factory=dict)
    versions: dict[str, str] = Field(default_factory=dict)
    environment: dict[str, str] = Field(default_factory=dict)
    remarks: tuple[tuple[float, str], ...] = ()
    queued: Queued | None = None

    @property
    def seen_until(self) -> float:
        """The unix time that the picture tells of: its end, else when it was taken."""
        return self.taken_at if self.ending is None else self.ending.at

    @property
    def how_it_ended(self) -> str:
        """How it ended, for people; nothing while it runs."""
        if self.ending is None:
            return ""
        if self.ending.code == 0:
            return "ended after its last world had failed" if self.ends_failed else "ended well"
        if self.ending.was_stopped:
            return f"stopped by {STOPPED_BY[self.ending.code]}"
        return f"ended with code {self.ending.code}" if self.has_exit_code else "failed"

    @property
    def ends_failed(self) -> bool:
        """Whether the last world of a driver had failed: its supervisor hears of the driver's end, not of its code."""
        if self.ending is None or self.has_exit_code or self.topology is None:
            return False
        last = max(
            self.topology.worlds, key=lambda world: world.timeline[-1][1] if world.timeline else 0.0, default=None
        )
        return last is not None and last.phase is Phase.FAILED

    @property
    def has_exit_code(self) -> bool:
        """Whether the ending's code is some command's: that of Slurm's tasks Slurm alone knows."""
        return self.purpose != "tasks"

    @property
    def is_plain(self) -> bool:
        """Whether the program of ``eray run`` ended well and no process of it called ``eray.connect()``."""
        worlds = () if self.topology is None else self.topology.worlds
        joined = any(world.processes or world.restarts for world in worlds)
        told = any(track.process_index is not None for track in self.tracks)
        ended_well = self.ending is not None and self.ending.code == 0
        return self.purpose == "run" and ended_well and not joined and not told

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON types."""
        return self.model_dump(mode="json")
