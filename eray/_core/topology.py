"""The models of the cluster as everyone sees it: nodes, devices, processes, worlds.

All are frozen, ignore fields that a newer eray may add, and turn into JSON types and back without loss.
"""

from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from eray._core.phase import Phase as Phase

API_VERSION = 1


class Model(BaseModel):
    """Base of what crosses a process boundary: frozen, and tolerant of fields it does not know."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Device(Model):
    """One accelerator. ``token`` is what the visible-devices variable says: an index, ``GPU-…`` or ``MIG-…``."""

    ordinal: int = Field(ge=0)
    token: str
    uuid: str | None = None
    kind: str = ""
    platform: str = ""


class Node(Model):
    """One node with its Ray node. ``node_rank`` is the node's place in the cluster's node list."""

    node_rank: int = Field(ge=0)
    name: str
    hostname: str = ""
    address: str = ""
    ray_node_id: str = ""
    devices: tuple[Device, ...] = ()
    cpus: int | None = None
    memory_bytes: int | None = None
    ports: dict[str, int] = Field(default_factory=dict)
    alive: bool = True

    @model_validator(mode="after")
    def _ordinals_are_dense(self) -> Self:
        if [device.ordinal for device in self.devices] != list(range(len(self.devices))):
            raise ValueError("devices must be listed by ordinal: 0, 1, 2, …")
        return self


class Process(Model):
    """One process of a world. ``local_device_ids`` are ordinals in ``visible``; None means JAX decides."""

    process_index: int = Field(ge=0)
    node_rank: int | None
    node: str = ""
    local_index: int | None
    pid: int
    visible: tuple[str, ...] | None = None
    local_device_ids: tuple[int, ...] | None = None
    device_rule: str | None = None
    state: str


class Restart(Model):
    """Why and when a world was started again. ``generation`` is the one that failed; the times are unix times."""

    generation: int = Field(ge=1)
    process_count: int = Field(ge=1)
    cause: str
    process_index: int | None = None
    node: str | None = None
    code: int | None = None
    failed_at: float | None = None
    restarted_at: float


class World(Model):
    """The processes of one ``jax.distributed`` run. ``timeline`` holds (phase, unix time), oldest first."""

    name: str
    generation: int = Field(ge=1)
    process_count: int = Field(ge=1)
    phase: Phase
    coordinator_address: str | None = None
    processes: tuple[Process, ...] = ()
    failure: str | None = None
    timeline: tuple[tuple[Phase, float], ...] = ()
    restarts: tuple[Restart, ...] = ()

    @model_validator(mode="after")
    def _indexes_are_unique(self) -> Self:
        indexes = [process.process_index for process in self.processes]
        if len(set(indexes)) != len(indexes) or any(index >= self.process_count for index in indexes):
            raise ValueError(f"process indexes must be unique and below {self.process_count}")
        return self


class PreemptionNotice(Model):
    """Why, and since which unix time, the job is known to end soon."""

    at: float
    reason: str


class Topology(Model):
    """The one picture of the cluster, as the coordinator has it. ``head`` is a node's name."""

    api_version: int = API_VERSION
    job: dict[str, Any] | None = None
    head: str | None = None
    epoch: int = 1
    nodes: tuple[Node, ...] = ()
    worlds: tuple[World, ...] = ()
    preemption: PreemptionNotice | None = None

    def world(self, name: str) -> World | None:
        """Return the world of that name, or None."""
        return next((world for world in self.worlds if world.name == name), None)

    def node(self, node_rank: int) -> Node | None:
        """Return the node of that rank, or None."""
        return next((node for node in self.nodes if node.node_rank == node_rank), None)
