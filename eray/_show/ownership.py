"""Say which process holds which device of a node, from what the processes of all worlds report."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from eray._core.picture import Picture
from eray._core.topology import Device, Node, Process

OVER = frozenset({"left", "dead", "failed"})
BOUND = frozenset({"own", "own-bound"})
"""Rules by which each process has devices of its own even where all of them call theirs ``0`` (cgroups)."""

Holding = Literal["running", "starting", "left", "dead", "shared", "open", "idle"]


@dataclass(frozen=True)
class Claim:
    """A process of the world at ``world`` in the topology's list, which began at ``since``, None if it did not."""

    world: int
    process: Process
    since: float | None = None

    @property
    def lives(self) -> bool:
        """Tell whether the process can still hold a device."""
        return self.process.state not in OVER


@dataclass(frozen=True)
class Cell:
    """One device of a node and the processes that hold it.

    Attributes:
        holding: the state of the one process that holds it; ``shared`` by several; ``open``: JAX decides in the
            processes that are listed; ``idle``: nobody's.
        device: what the node says of it; None where only a process named it.
        assumed: Slurm bound the device to the process, and which one of the node it is cannot be told.
    """

    token: str
    holding: Holding
    claims: tuple[Claim, ...] = ()
    device: Device | None = None
    assumed: bool = False


def state_of(process: Process) -> Holding:
    """Return the state that people see: ``starting`` for all between joining and running, ``dead`` also for failed."""
    if process.state in ("running", "left"):
        return "running" if process.state == "running" else "left"
    return "dead" if process.state in OVER else "starting"


def claims_by_node(picture: Picture) -> dict[int, list[Claim]]:
    """Return the processes of every world by the rank of their node; -1 for a node that nobody knows."""
    found: dict[int, list[Claim]] = {}
    if picture.topology is None:
        return found
    ranks = {node.name: node.node_rank for node in picture.topology.nodes}
    ranks |= {view.name: view.node_rank for view in picture.nodes}
    for at, world in enumerate(picture.topology.worlds):
        since = world.timeline[0][1] if world.timeline else None
        for process in world.processes:
            rank = process.node_rank if process.node_rank is not None else ranks.get(process.node, -1)
            found.setdefault(rank, []).append(Claim(at, process, since))
    return found


def cells(node: Node | None, claims: Sequence[Claim]) -> tuple[Cell, ...]:
    """Return the devices of a node, the ones that it names itself first, and who holds each.

    A process that ended holds its devices only as long as no living one does, so that the end of a world can be read.
    """
    devices = () if node is None else node.devices
    places = _Places(devices)
    for group in _by_world(claims):
        bound = _bound_alike(group, devices)
        for claim in group:
            tokens = _tokens(claim.process, devices)
            if claim in bound:
                places.take_next(claim, len(tokens or ()))
            elif tokens is not None:
                for token in tokens:
                    places.take(claim, token)
            else:
                places.leave_open(claim)
    return places.cells()


class _Places:
    """The devices of one node while claims are laid upon them."""

    def __init__(self, devices: Sequence[Device]) -> None:
        self._devices: list[tuple[str, Device | None]] = [(device.token, device) for device in devices]
        self._held: list[list[Claim]] = [[] for _ in devices]
        self._open: list[list[Claim]] = [[] for _ in devices]
        self._assumed: set[int] = set()
        self._next: dict[int, int] = {}

    def take(self, claim: Claim, token: str) -> None:
        self._held[self._place(token)].append(claim)

    def take_next(self, claim: Claim, count: int) -> None:
        start = self._next.get(claim.world, 0)
        self._next[claim.world] = start + count
        for at in range(start, start + count):
            if at >= len(self._devices):
                self._add(f"#{at}")
            self._held[at].append(claim)
            self._assumed.add(at)

    def leave_open(self, claim: Claim) -> None:
        visible = claim.process.visible
        places = range(len(self._devices)) if visible is None else [self._place(token) for token in visible]
        for at in places:
            self._open[at].append(claim)

    def cells(self) -> tuple[Cell, ...]:
        return tuple(
            _cell(token, device, held, free, at in self._assumed)
            for at, ((token, device), held, free) in enumerate(zip(self._devices, self._held, self._open, strict=True))
        )

    def _place(self, token: str) -> int:
        for at, (name, device) in enumerate(self._devices):
            uuid = None if device is None else device.uuid
            if token == name or (uuid is not None and token.startswith(("GPU-", "MIG-")) and uuid.startswith(token)):
                return at
        return self._add(token)

    def _add(self, token: str) -> int:
        self._devices.append((token, None))
        self._held.append([])
        self._open.append([])
        return len(self._devices) - 1


def _cell(token: str, device: Device | None, held: Sequence[Claim], free: Sequence[Claim], assumed: bool) -> Cell:
    holders, candidates = _current(held), _current(free)
    if any(claim.lives for claim in candidates) and not any(claim.lives for claim in holders):
        return Cell(token, "open", candidates, device)
    if len(holders) > 1:
        return Cell(token, "shared", holders, device, assumed)
    if holders:
        return Cell(token, state_of(holders[0].process), holders, device, assumed)
    return Cell(token, "open" if candidates else "idle", candidates, device)


def _current(claims: Sequence[Claim]) -> tuple[Claim, ...]:
    """Return the living ones, else those of the world that began last."""
    living = tuple(claim for claim in claims if claim.lives)
    if living or not claims:
        return living
    last = max(claims, key=lambda claim: (claim.since or 0.0, claim.world)).world
    return tuple(claim for claim in claims if claim.world == last)


def _tokens(process: Process, devices: Sequence[Device]) -> tuple[str, ...] | None:
    """Return the tokens of a process's devices; None where JAX decides."""
    visible, ids = process.visible, process.local_device_ids
    if ids is not None:
        names = tuple(device.token for device in devices) if visible is None else visible
        return tuple(names[at] if at < len(names) else str(at) for at in ids)
    return visible if visible is not None and len(visible) <= 1 else None


def _bound_alike(group: Sequence[Claim], devices: Sequence[Device]) -> list[Claim]:
    """Return the processes that have devices of their own, but call them by the same tokens."""
    own = [claim for claim in group if claim.process.device_rule in BOUND]
    named = [token for claim in own for token in _tokens(claim.process, devices) or ()]
    return own if len(set(named)) < len(named) else []


def _by_world(claims: Sequence[Claim]) -> list[list[Claim]]:
    groups: dict[int, list[Claim]] = {}
    for claim in sorted(claims, key=lambda claim: (claim.world, claim.process.process_index)):
        groups.setdefault(claim.world, []).append(claim)
    return list(groups.values())
