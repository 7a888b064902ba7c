"""What one supervisor must know about its node and cluster, as data that crosses a pipe."""

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Self

from eray._core.handshake import Credentials
from eray._core.lives import Rule


@dataclass(frozen=True)
class WorldSpec:
    """A world whose processes the supervisors start: ``per_node`` counts them by node rank, ``rule`` of restarts."""

    name: str
    argv: tuple[str, ...]
    per_node: tuple[int, ...]
    devices_per_process: int | None
    rule: Rule = field(default_factory=Rule)

    @property
    def process_count(self) -> int:
        """How many processes the world has."""
        return sum(self.per_node)

    def layout(self, nodes: tuple[str, ...]) -> list[tuple[int, int, int, str]]:
        """Return (node_rank, local_index, local_count, node) by process index: dense, by node rank."""
        return [(rank, local, count, nodes[rank]) for rank, count in enumerate(self.per_node) for local in range(count)]

    def place_of(self, process_index: Any) -> dict[str, int]:
        """Return ``local_index`` and ``local_count`` of a process, nothing where it is none of this world."""
        if not isinstance(process_index, int) or not 0 <= process_index < self.process_count:
            return {}
        _, local_index, local_count, _ = self.layout(("",) * len(self.per_node))[process_index]
        return {"local_index": local_index, "local_count": local_count}

    def on(self, ranks: Collection[int]) -> "WorldSpec":
        """Return the world as it is started on these nodes alone: each has as many processes as before."""
        per_node = tuple(count if rank in ranks else 0 for rank, count in enumerate(self.per_node))
        return replace(self, per_node=per_node)


@dataclass(frozen=True)
class NodeSpec:
    """One node of one cluster.

    ``purpose`` is ``run`` (the supervisors start the world's processes), ``up`` (they stay until a signal) or
    ``tasks`` (they serve processes that call connect(), and leave after the last). ``node_rank`` 0 is the head.
    ``alias`` is the node's address where Slurm itself gave one (cloud nodes). ``shared_run_dir`` is where the
    supervisor of the job's own cluster would be, for a step that may use it. ``preemption_signals`` are the names,
    such as USR1, of the signals that only warn. ``log_monitor`` has Ray pass its workers' output to their drivers, as
    it does with a dashboard. ``ray_options`` are more arguments of ``ray start``: they beat its others.
    """

    purpose: str
    cluster: str
    key: str
    restart: int
    job: str | None
    node_rank: int
    node: str
    nodes: tuple[str, ...]
    head_hosts: tuple[str, ...]
    ports: tuple[int, ...]
    token: str
    fingerprint: str
    auth: str
    tmpdir: str
    run_dir: str
    ray_dir: str
    state_dir: str
    interface: str | None
    alias: str | None
    cpus: int
    memory_bytes: int | None
    ray_gpus: int
    visible: tuple[str, ...] | None
    gpus_on_node: int | None
    hardware_count: int | None
    dashboard: bool
    cluster_timeout_s: float
    node_timeout_s: float
    world: WorldSpec | None = None
    shared_run_dir: str | None = None
    log_monitor: bool = False
    ray_options: tuple[str, ...] = ()
    preemption_signals: tuple[str, ...] = ()

    def to_json(self) -> str:
        """Return the spec as one line of JSON. It holds the token: for a pipe, never for argv or a log."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what ``to_json`` wrote."""
        values = _tuples(json.loads(text))
        if values["world"] is not None:
            world = _tuples(values["world"])
            values["world"] = WorldSpec(**world | {"rule": Rule(**world["rule"])})
        return cls(**values)

    @property
    def credentials(self) -> Credentials:
        """What a node proves itself with to the others."""
        return Credentials(self.token, self.fingerprint, self.key)

    @property
    def identity(self) -> dict[str, Any]:
        """What tells this life of the cluster from others, for ``access.Life`` to read. Without the token."""
        names = ("key", "job", "cluster", "restart", "purpose", "auth", "fingerprint")
        about = {name: getattr(self, name) for name in names} | {"node": self.nodes[0]}
        if self.world is not None:
            about |= {"program": self.world.argv, "processes": sum(self.world.per_node)}
        return about

    @property
    def socket_path(self) -> str:
        """Where this node's supervisor listens for the processes of its node."""
        return f"{self.run_dir}/{SOCKET_NAME}"

    @property
    def token_path(self) -> str:
        """Where Ray's processes and drivers read the token."""
        return f"{self.run_dir}/{TOKEN_NAME}"


SOCKET_NAME = "sock"
TOKEN_NAME = "token"
NODE_FILE = "node.json"
BEACON_FILE = "beacon.json"
LOOK = "look"  # what somebody who only looks says to the beacon
LOG_NAME = "eray.log"  # what a node's supervisor said to people, kept with the logs of Ray
START_LOG = "ray_start.log"  # what `ray start` printed


def _tuples(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}
