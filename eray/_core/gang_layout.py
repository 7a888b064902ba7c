"""Where the processes of a launched world go: which node, and how much of it each takes."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from eray.errors import UsageError

SMALLEST_SHARE = 0.0001  # Ray counts in ten-thousandths
LEAST_CPUS = 0.01
"""The smallest part of a CPU that a process is given where the user says nothing."""
MOST_PROCESSES = 100_000  # as many calls as the coordinator holds at once
NAMED_NODES = 8


@dataclass(frozen=True)
class Room:
    """A node of the cluster: what it has, and what nobody holds of it."""

    node_rank: int
    name: str
    ray_node_id: str
    cpus: float
    gpus: float
    free_cpus: float
    free_gpus: float

    def whole(self) -> "Room":
        """Return the node as if nobody held anything of it."""
        return replace(self, free_cpus=self.cpus, free_gpus=self.gpus)


@dataclass(frozen=True)
class Ask:
    """What the user asked for: ``processes`` in all, or ``processes_per_node``; None leaves a share to the node."""

    processes: int | None = None
    processes_per_node: int = 1
    devices_per_process: int | None = None
    cpus_per_process: float | None = None

    def check(self) -> None:
        """Refuse what makes no sense.

        Raises:
            UsageError: it names the argument and its value.
        """
        for name, least in (("processes", 1), ("processes_per_node", 1), ("devices_per_process", 0)):
            value = getattr(self, name)
            if value is not None and (type(value) is not int or value < least):
                raise UsageError(f"{name}={value!r}: must be a whole number, {least} or more")
        if max(self.processes or 0, self.processes_per_node) > MOST_PROCESSES:
            asked = self.processes if self.processes is not None else self.processes_per_node
            raise UsageError(f"{asked} processes: a world has {MOST_PROCESSES} at most")
        cpus = self.cpus_per_process
        if cpus is not None and (
            not isinstance(cpus, int | float) or isinstance(cpus, bool) or not 0 <= cpus < 1_000_000
        ):
            raise UsageError(f"cpus_per_process={cpus!r}: must be a number, 0 or more")

    def __str__(self) -> str:
        count = f"{self.processes} in all" if self.processes is not None else f"{self.processes_per_node} on each node"
        devices = None if self.devices_per_process is None else f"{self.devices_per_process} devices"
        cpus = None if self.cpus_per_process is None else f"{self.cpus_per_process:g} CPUs"
        shares = " and ".join(share for share in (devices, cpus) if share)
        return f"processes with {shares} each, {count}" if shares else f"processes, {count}"


@dataclass(frozen=True)
class Seat:
    """One process's node, and what it holds of it. ``local_index`` is its place among those of its node."""

    node_rank: int
    local_index: int
    local_count: int
    node: str
    ray_node_id: str
    cpus: float
    gpus: float

    @property
    def row(self) -> tuple[int, int, int, str]:
        """What the coordinator is told of it."""
        return (self.node_rank, self.local_index, self.local_count, self.node)


def seats(ask: Ask, rooms: Iterable[Room]) -> tuple[Seat, ...] | None:
    """Return the seats of all processes by node rank, None where what is free does not hold them.

    As many processes on each node as `eray run` would start; where they do not fit so, each node in turn takes as many
    as it can. Where some nodes have GPUs, and the processes may have some, only those nodes count.
    """
    fit = eligible(ask, rooms)
    if not fit:
        return None
    counts = _even(ask, len(fit))
    if not all(_holds(room, count, ask) for room, count in zip(fit, counts, strict=True)):
        if ask.processes is None:
            return None
        counts = _greedy(ask, fit)
    if ask.processes is not None and sum(counts) < ask.processes:
        return None
    return tuple(seat for room, count in zip(fit, counts, strict=True) for seat in _seats_of(room, count, ask))


def ask_again(ask: Ask, rooms: Iterable[Room], before: Sequence[Seat]) -> Ask:
    """Return what a generation asks for on the nodes that are left.

    As many processes as the first where these nodes could hold them, else on each node at most as many as one had.
    """
    if ask.processes is None or seats(ask, [room.whole() for room in rooms]) is not None:
        return ask
    return replace(ask, processes=None, processes_per_node=max(seat.local_count for seat in before))


def eligible(ask: Ask, rooms: Iterable[Room]) -> list[Room]:
    """Return the nodes that may take processes, by rank."""
    by_rank = sorted(rooms, key=lambda room: room.node_rank)
    with_gpus = [room for room in by_rank if room.gpus >= 1] if ask.devices_per_process != 0 else []
    return with_gpus or by_rank


def process_order(placed: Sequence[Seat], visible: Sequence[Collection[str]]) -> list[int]:
    """Return the seats' positions by process_index: by node rank, then by the lowest device that a process was given.

    >>> one = Seat(0, 0, 2, "n", "id", 1, 1)
    >>> process_order([one, replace(one, local_index=1)], [["3"], ["0"]])
    [1, 0]
    """

    def key(position: int) -> tuple[object, ...]:
        tokens = sorted(_token_key(token) for token in visible[position])
        return placed[position].node_rank, tokens[:1], placed[position].local_index

    return sorted(range(len(placed)), key=key)


def found(rooms: Iterable[Room]) -> str:
    """Return what each node has free, as words."""
    by_rank = sorted(rooms, key=lambda room: room.node_rank)
    words = [_room_words(room) for room in by_rank[:NAMED_NODES]]
    more = len(by_rank) - NAMED_NODES
    return "; ".join(words) + (f"; and {more} nodes more" if more > 0 else "")


def _even(ask: Ask, nodes: int) -> list[int]:
    if ask.processes is None:
        return [ask.processes_per_node] * nodes
    each, more = divmod(ask.processes, nodes)
    return [each + (rank < more) for rank in range(nodes)]


def _greedy(ask: Ask, rooms: Sequence[Room]) -> list[int]:
    assert ask.processes is not None
    counts, left = [], ask.processes
    for room in rooms:
        count = next((count for count in range(_most(room, left, ask), 0, -1) if _holds(room, count, ask)), 0)
        counts.append(count)
        left -= count
    return counts


def _most(room: Room, left: int, ask: Ask) -> int:
    """Return a number of processes that a node surely does not exceed."""
    each = LEAST_CPUS if ask.cpus_per_process is None else ask.cpus_per_process
    return min(left, int(room.free_cpus / each) + 1) if each else left


def _holds(room: Room, count: int, ask: Ask) -> bool:
    if count == 0:
        return True
    cpus, gpus = _share(room, count, ask)
    if gpus == 0 and room.gpus >= 1 and ask.devices_per_process is None:
        return False  # more processes than devices
    if ask.cpus_per_process is None and cpus < LEAST_CPUS:
        return False
    return cpus * count <= room.free_cpus + SMALLEST_SHARE / 2 and gpus * count <= room.free_gpus


def _share(room: Room, count: int, ask: Ask) -> tuple[float, int]:
    """Return the CPUs and GPUs of each of ``count`` processes; whole CPUs where there is one for each."""
    gpus = int(room.gpus) // count if ask.devices_per_process is None else ask.devices_per_process
    if room.gpus < 1:
        gpus = 0  # the devices asked for are JAX's CPU devices
    cpus = ask.cpus_per_process
    if cpus is None:
        steps = int(room.cpus / count / SMALLEST_SHARE)
        cpus = room.cpus // count if room.cpus >= count else steps * SMALLEST_SHARE
    return cpus, gpus


def _seats_of(room: Room, count: int, ask: Ask) -> list[Seat]:
    if count == 0:
        return []
    cpus, gpus = _share(room, count, ask)
    return [
        Seat(room.node_rank, local, count, room.name, room.ray_node_id, round(cpus, 4), gpus) for local in range(count)
    ]


def _token_key(token: str) -> tuple[int, int, str]:
    return (0, int(token), "") if token.isdigit() else (1, 0, token)


def _room_words(room: Room) -> str:
    gpus = f" and {room.free_gpus:g} of {room.gpus:g} GPUs" if room.gpus else ""
    return f"{room.name} has {room.free_cpus:g} of {room.cpus:g} CPUs{gpus} free"
