"""Take the roll-call of a cluster's nodes: who reported to the head's beacon, who is missing, and what does not fit.

Each node sends one ``NodeReport`` before any Ray starts; the head reports to itself.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from ipaddress import ip_address
from types import MappingProxyType
from typing import Any

from eray._core.message import Message
from eray.errors import AddressError, BeaconError, ErayError, VersionMismatchError


@dataclass(frozen=True)
class NodeReport:
    """What a node says of itself. ``devices`` are visible tokens, None where the variable is unset."""

    node_rank: int
    name: str
    hostname: str
    address: str
    pid: int
    python: str
    ray: str
    eray: str
    cpus: int
    memory_bytes: int
    devices: tuple[str, ...] | None
    hardware_count: int | None

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON types."""
        return asdict(self) | {"devices": None if self.devices is None else list(self.devices)}

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> "NodeReport":
        """Read a report that came over the wire; keys that are not ours are left alone.

        Raises:
            BeaconError: a field is missing or has a value that it cannot have; the message names it.
        """
        message = Message(raw, "node report", str(raw.get("name") or "?"))
        address = message.text("address")
        try:
            unspecified = ip_address(address).is_unspecified
        except ValueError:
            unspecified = True
        if unspecified:
            raise message.error("address", "must be the IP address of one interface")
        return cls(
            node_rank=message.count("node_rank", 0),
            name=message.text("name"),
            hostname=message.text("hostname"),
            address=address,
            pid=message.count("pid", 1),
            python=message.text("python"),
            ray=message.text("ray"),
            eray=message.text("eray"),
            cpus=message.count("cpus", 1),
            memory_bytes=message.count("memory_bytes", 0),
            devices=message.optional_texts("devices"),
            hardware_count=message.optional_count("hardware_count", 0),
        )


@dataclass(frozen=True)
class Entry:
    """One node's place in the roll: its last report, when it came, and when its channel was lost."""

    report: NodeReport
    reported_at: float
    lost_at: float | None = None


@dataclass(frozen=True)
class RollCall:
    """The roll of the nodes ``expected``, their names by rank. Frozen: each event returns the next state.

    ``problem`` is the first thing that makes the cluster impossible, as the error to raise on every node.
    """

    expected: tuple[str, ...]
    head_rank: int = 0
    entries: Mapping[int, Entry] = field(default_factory=lambda: MappingProxyType({}))
    problem: ErayError | None = None

    @property
    def reports(self) -> tuple[NodeReport, ...]:
        """Return the reports of the nodes that are there, by rank."""
        return tuple(entry.report for _, entry in sorted(self.entries.items()) if entry.lost_at is None)

    @property
    def missing(self) -> tuple[str, ...]:
        """Return the names of the nodes that did not report, or whose channel was lost, by rank."""
        there = {rank for rank, entry in self.entries.items() if entry.lost_at is None}
        return tuple(name for rank, name in enumerate(self.expected) if rank not in there)

    @property
    def complete(self) -> bool:
        """Tell whether every node is there and nothing is wrong with any."""
        return self.problem is None and not self.missing

    def has(self, report: NodeReport) -> bool:
        """Tell whether the same supervisor has reported before."""
        entry = self.entries.get(report.node_rank)
        return entry is not None and _who(entry.report) == _who(report)

    def register(self, report: NodeReport, now: float) -> "RollCall":
        """Take a node's report at time ``now``. The same supervisor may report again, a lost node's new one too."""
        misplaced = self._check_place(report)
        if misplaced is not None:  # the one that was there first keeps its place
            return replace(self, problem=self.problem or misplaced)
        problem = self.problem or self._check_versions(report) or self._check_address(report)
        entries = MappingProxyType({**self.entries, report.node_rank: Entry(report, now)})
        return replace(self, entries=entries, problem=problem)

    def lost(self, node_rank: int, now: float) -> "RollCall":
        """Note that the channel to a node ended at time ``now``: it is missing until it reports again."""
        entry = self.entries.get(node_rank)
        if entry is None or entry.lost_at is not None:
            return self
        return replace(self, entries=MappingProxyType({**self.entries, node_rank: replace(entry, lost_at=now)}))

    def _check_place(self, report: NodeReport) -> ErayError | None:
        rank, count = report.node_rank, len(self.expected)
        if rank >= count:
            found = f"it reports as node {rank} of {count}"
            return BeaconError(report.name, found, "all nodes must be tasks of one step; look at SLURM_NODEID there")
        if report.name != self.expected[rank]:
            found = f"it reports as node {rank}, which is {self.expected[rank]}"
            return BeaconError(report.name, found, "all nodes must be tasks of one step; look at SLURM_NODEID there")
        entry = self.entries.get(rank)
        if entry is not None and entry.lost_at is None and _who(entry.report) != _who(report):
            found = f"two supervisors report for it: {_where(entry.report)} and {_where(report)}"
            return BeaconError(report.name, found, "start eray once a node, or one job's nodes in one step")
        return None

    def _check_versions(self, report: NodeReport) -> ErayError | None:
        head = report if report.node_rank == self.head_rank else self._head()
        if head is None:
            return None  # compared as soon as the head itself reports
        for other in (report, *(self.reports if report is head else ())):
            problem = _compare_versions(head, other)
            if problem is not None:
                return problem
        return None

    def _check_address(self, report: NodeReport) -> ErayError | None:
        if len(self.expected) > 1 and ip_address(report.address).is_loopback:
            found = f"its address is {report.address}, which no other node can reach"
            remedy = f"mend the line of {report.hostname} in /etc/hosts there, or set ERAY_INTERFACE"
            return AddressError(report.name, found, remedy)
        for entry in self.entries.values():
            other = entry.report
            if other.address == report.address and other.node_rank != report.node_rank and entry.lost_at is None:
                found = f"its address {report.address} is that of node {other.name} too"
                remedy = "set ERAY_INTERFACE to the network on which each node has its own address"
                return AddressError(report.name, found, remedy)
        return None

    def _head(self) -> NodeReport | None:
        entry = self.entries.get(self.head_rank)
        return None if entry is None else entry.report


def _compare_versions(head: NodeReport, other: NodeReport) -> VersionMismatchError | None:
    pairs = (("Python", head.python, other.python), ("Ray", head.ray, other.ray), ("eray", head.eray, other.eray))
    for label, here, there in pairs:
        if here != there:
            found = f"it has {label} {there}, the head {head.name} has {here}"
            return VersionMismatchError(other.name, found, "use one environment (the same path or image) on all nodes")
    return None


def _who(report: NodeReport) -> tuple[str, int]:
    return report.hostname, report.pid


def _where(report: NodeReport) -> str:
    return f"pid {report.pid} on {report.hostname} ({report.address})"
