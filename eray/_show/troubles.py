"""Say what is wrong with a cluster, the worst first, each with its remedy."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import Literal

from eray._core.phase import COMPLETE
from eray._core.picture import Picture
from eray._core.topology import World
from eray._show.failed_worlds import first_failed
from eray._show.log_hint import failure_hint, log_hint
from eray._show.node_rows import NodeRow
from eray._show.ownership import Cell, Claim
from eray._show.waits import Waits, is_long, is_silent, raising, waits_of
from eray._show.wording import counted, folded, folded_names

BIND = "give each process its own by `srun --gpus-per-task=N` or `eray run --processes-per-node K`, or set ERAY_DEVICES"
LOOK = "`eray doctor` on that node names what it lacks; its log says where it stopped"


@dataclass(frozen=True)
class Trouble:
    """One thing that is wrong, or may be: a ``note`` is only worth knowing; no ``remedy`` where ``found`` has it."""

    level: Literal["error", "warning", "note"]
    found: str
    remedy: str


def troubles(picture: Picture, rows: Sequence[NodeRow]) -> tuple[Trouble, ...]:
    """Return what is wrong; ``rows`` are those of ``node_rows``."""
    waits = waits_of(picture)
    found = [*_ending(picture), *_nodes(picture, rows, waits), *_worlds(picture, waits)]
    found += [*_devices(picture, rows), *_notes(picture)]
    order = ("error", "warning", "note")
    return tuple(sorted(found, key=lambda trouble: order.index(trouble.level)))


def _ending(picture: Picture) -> Iterator[Trouble]:
    ending = picture.ending
    if ending is not None and ending.has_failed:
        cause = f": {ending.cause}" if ending.cause else ", and no cause is known"
        yield Trouble("error", f"the cluster {picture.how_it_ended}{cause}", failure_hint(picture))


def _nodes(picture: Picture, rows: Sequence[NodeRow], waits: Waits) -> Iterator[Trouble]:
    lost: dict[str, list[str]] = {}
    for row in rows:
        if row.view.state == "lost":
            lost.setdefault(row.view.reason or "no reason is known", []).append(row.view.name)
    for reason, names in lost.items():
        remedy = f"see whether it is up (`sinfo -R`, `scontrol show node`), and its log; {log_hint(picture)}"
        yield Trouble("error", f"{counted(len(names), 'node')} lost, {folded_names(names)}: {reason}", remedy)
    of = f" of {len(rows)}" if len(rows) > 1 else ""
    over = picture.phase == "ended"
    did = "never reported" if over else "did not report yet"
    late = {wait.node_rank for wait in waits.nodes if is_long(wait)}
    awaited = [row.view for row in rows if row.view.state == "awaited" and not picture.is_plain]
    if names := [view.name for view in awaited if over or view.node_rank in late]:
        found = f"{counted(len(names), 'node')}{of} {did}: {folded_names(names)}"
        yield Trouble("warning", found, f"{LOOK}{_raising(picture, waits)}")
    if names := [row.view.name for row in rows if row.view.state == "reported" and row.view.node_rank in late]:
        verb = "brings" if len(names) == 1 else "bring"
        found = f"{counted(len(names), 'node')}{of} still {verb} Ray up: {folded_names(names)}"
        yield Trouble("note", found, f"{LOOK}{_raising(picture, waits)}")


def _raising(picture: Picture, waits: Waits) -> str:
    """Return the advice to raise the timeout where nodes are near it, and where the cluster ended without them."""
    longest = inf if picture.phase == "ended" else max((wait.for_s for wait in waits.nodes), default=0.0)
    return raising(picture, "ERAY_CLUSTER_TIMEOUT_S", longest, "; ")


def _worlds(picture: Picture, waits: Waits) -> Iterator[Trouble]:
    told = (picture.ending.cause if picture.ending is not None else None) or ""
    for world in () if picture.topology is None else picture.topology.worlds:
        name = f"world {world.name!r} (generation {world.generation})"
        if world.failure is not None and world.failure not in told:
            again = "`eray run --max-restarts R` starts it again after a death"
            remedy = "; ".join(filter(None, (failure_hint(picture), again)))
            yield Trouble("error", f"{name} failed: {world.failure}", remedy)
        told_all = first_failed(picture, world) is not None  # the others ended because of that one
        for state in () if told_all else ("dead", "failed"):
            gone = [process for process in world.processes if process.state == state]
            if not gone or (len(gone) == 1 and f"process {gone[0].process_index} " in f"{world.failure} {told}"):
                continue  # the cause has named it
            where = folded_names(list(dict.fromkeys(process.node for process in gone)))
            found = f"{name}: {_by_index([process.process_index for process in gone])} on {where}: {state}"
            first = "the first that failed is the cause"
            yield Trouble("error", found, "; ".join(filter(None, (first, failure_hint(picture)))))
        yield from _absent(picture, world, name, waits)


def _absent(picture: Picture, world: World, name: str, waits: Waits) -> Iterator[Trouble]:
    if len(world.processes) == world.process_count or world.phase in COMPLETE:
        return
    absent = set(range(world.process_count)) - {process.process_index for process in world.processes}
    of = f"{len(absent)} of {counted(world.process_count, 'process', 'processes')}"
    if picture.phase == "ended" or world.phase == "failed":
        if not world.processes:  # a plain program, or one whose cause is told
            return
        found, longest = f"{name}: {of} never joined: {_by_index(absent)}", inf
    elif long := [wait.for_s for wait in waits.worlds if wait.world == world.name and is_long(wait)]:
        if is_silent(picture, world):
            found = f"{name}: no process has called eray.connect() yet"
            yield Trouble("note", found, "a plain program need not; else see what each does before that")
            return
        found, longest = f"{name} waits for {of}: {_by_index(absent)}", max(long)
    else:
        return
    more = raising(picture, "ERAY_JOIN_TIMEOUT_S", longest, "; ")
    who = "it" if len(absent) == 1 else "each"
    yield Trouble("warning", found, f"see whether {who} started and called eray.connect(){more}")


def _by_index(indexes: Collection[int]) -> str:
    return f"process{'es' if len(indexes) > 1 else ''} {folded(indexes)}"


def _devices(picture: Picture, rows: Sequence[NodeRow]) -> Iterator[Trouble]:
    for found in _alike(rows, lambda cell: cell.holding == "shared"):
        shared = [cell for cell in found.rows[0].cells if cell.holding == "shared"]
        by = list(dict.fromkeys(_named(picture, claim) for cell in shared for claim in cell.claims))
        on = f" on {found.rows[0].view.name}" if len(found.rows) > 1 else ""
        more = " and others" if len(by) > 8 else ""
        yield Trouble("error", f"held by several processes: {found};{on} {', '.join(by[:8])}{more}", BIND)
    for found in _alike(rows, lambda cell: cell.holding == "open" and len(cell.claims) > 1):
        yield Trouble("warning", f"seen by several processes, and JAX decides in each: {found}", BIND)
    worlds = () if picture.topology is None else picture.topology.worlds
    if any(world.phase == "running" for world in worlds):
        for found in _alike(rows, lambda cell: cell.holding == "idle"):
            remedy = "start more processes (`--processes-per-node`), or give each more (`--devices-per-process`)"
            yield Trouble("warning", f"idle, held by no process: {found}", remedy)


@dataclass(frozen=True)
class _Alike:
    """The same devices of several nodes."""

    tokens: tuple[str, ...]
    rows: list[NodeRow]

    def __str__(self) -> str:
        some = "s" if len(self.tokens) > 1 else ""
        each = "each of " if len(self.rows) > 1 else ""
        names = folded_names([row.view.name for row in self.rows])
        return f"device{some} {', '.join(self.tokens)} of {each}{names}"


def _alike(rows: Sequence[NodeRow], are: Callable[[Cell], bool]) -> list[_Alike]:
    found: dict[tuple[str, ...], list[NodeRow]] = {}
    for row in rows:
        if tokens := tuple(cell.token for cell in row.cells if are(cell)):
            found.setdefault(tokens, []).append(row)
    return [_Alike(tokens, where) for tokens, where in found.items()]


def _named(picture: Picture, claim: Claim) -> str:
    worlds = () if picture.topology is None else picture.topology.worlds
    of = f" of {worlds[claim.world].name!r}" if len(worlds) > 1 else ""
    return f"process {claim.process.process_index}{of}"


def _notes(picture: Picture) -> Iterator[Trouble]:
    if picture.topology is None:
        return
    if picture.topology.preemption is not None:
        found = f"the job is to end soon: {picture.topology.preemption.reason}"
        yield Trouble(
            "warning", found, "`conn.should_save(step)` is true at one step in all processes (docs/preemption.md)"
        )
    for world in picture.topology.worlds:
        if world.restarts:
            found = f"world {world.name!r} was started again {counted(len(world.restarts), 'time')}"
            yield Trouble("note", f"{found}; the last time because {world.restarts[-1].cause}", "see Restarts below")
