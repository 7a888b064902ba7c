"""Say in lines which nodes a cluster has, and what of their devices is idle or shared."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from eray._core.phase import Phase
from eray._core.picture import Picture
from eray._core.sizes import size
from eray._core.topology import Node
from eray._show.lines import Line, labelled, table
from eray._show.node_rows import NodeRow
from eray._show.ownership import Cell
from eray._show.waits import Waits
from eray._show.wording import counted, lasted
from eray._show.words import hosts, one_line

FOLDED = 9
"""Nodes from this number on stand in one row where they are alike."""
ROWS, GROUPS = 12, 3
ID = 8
HEAD = ("node", "state", "address", "CPUs", "memory", "devices", "Ray node")
LAST = ("node", "at the end", *HEAD[2:])
STYLES = {"ready": "green", "reported": "yellow", "awaited": "yellow", "lost": "red"}
ORDER = ("lost", "awaited", "reported", "ready")
ENDED = {"awaited": "never reported", "reported": "whose Ray was not up yet", "ready": "had been ready"}
"""What is said of nodes at the end: nothing more is to come."""


def node_lines(picture: Picture, rows: Sequence[NodeRow], waits: Waits, width: int | None) -> Iterator[Line]:
    """Yield the nodes: how many are in which state, a table, who is awaited or lost, and devices to look at."""
    states: Counter[str] = Counter(row.view.state for row in rows)
    words = ENDED if picture.phase == "ended" else {}
    said = ", ".join(f"{states[state]:,} {words.get(state, state)}" for state in ORDER if states[state])
    unknown = f"the head, {picture.head}, does not answer yet" if picture.phase == "starting" else "no node is known"
    yield Line(f"{counted(len(rows), 'node')}: {said}" if rows else unknown, "bold")
    if rows:
        head = HEAD if picture.phase != "ended" else LAST
        yield from table(head, [(_cells(group), STYLES[group[0].view.state]) for group in _groups(rows)], width)
    for state, aim in (("awaited", "to report to the head"), ("reported", "to have its Ray ready")):
        if waiting := [wait for wait in waits.nodes if wait.state == state]:
            longest = max(wait.for_s for wait in waiting)
            yield labelled(
                "awaited", f"{hosts([wait.node for wait in waiting])} {aim}{lasted(', for ', longest)}", "yellow"
            )
    yield from _lost(picture, rows)
    if picture.phase != "ended":
        yield from _devices(picture, rows)


def _groups(rows: Sequence[NodeRow]) -> list[list[NodeRow]]:
    """Return the nodes that stand in one row; those that are not ready first where there are many kinds."""
    if len(rows) < FOLDED:
        return [[row] for row in rows]
    found: dict[tuple[str, ...], list[NodeRow]] = {}
    for row in rows:
        found.setdefault((row.view.state, *_facts(row.node)), []).append(row)
    groups = list(found.values())
    if len(groups) <= ROWS:
        return groups
    groups.sort(key=lambda group: (ORDER.index(group[0].view.state), -len(group)))
    rest: dict[str, list[NodeRow]] = {}
    for group in groups[ROWS:]:
        rest.setdefault(group[0].view.state, []).extend(group)
    return groups[:ROWS] + [sorted(group, key=lambda row: row.view.node_rank) for group in rest.values()]


def _cells(group: Sequence[NodeRow]) -> tuple[str, ...]:
    first, node = group[0].view, group[0].node
    facts = zip(*(_facts(row.node) for row in group), strict=True)
    cpus, memory, devices = (column[0] if len(set(column)) == 1 else "various" for column in facts)
    alone = node is not None and len(group) == 1
    address, ray_node = (node.address, node.ray_node_id[:ID]) if alone and node is not None else ("", "")
    names = hosts([row.view.name for row in group])
    return names, first.state, address, cpus, memory, devices, ray_node


def _facts(node: Node | None) -> tuple[str, str, str]:
    if node is None:
        return "", "", ""
    kinds = Counter(device.kind or device.platform or "device" for device in node.devices)
    devices = ", ".join(f"{count} × {one_line(kind)}" for kind, count in kinds.items())
    memory = "" if node.memory_bytes is None else size(node.memory_bytes)
    return "" if node.cpus is None else str(node.cpus), memory, devices or "none"


def _lost(picture: Picture, rows: Sequence[NodeRow]) -> Iterator[Line]:
    lost: dict[str, list[NodeRow]] = {}
    for row in rows:
        if row.view.state == "lost":
            lost.setdefault(one_line(row.view.reason) or "no reason is known", []).append(row)
    for reason, group in list(lost.items())[:ROWS]:
        times = [row.view.since for row in group if row.view.since is not None]
        then = " ago" if picture.ending is None else " before the end"
        ago = lasted(", ", picture.seen_until - max(times), then) if times else ""
        yield labelled("lost", f"{hosts([row.view.name for row in group])}{ago}: {reason}", "red")
    if len(lost) > ROWS:
        yield labelled("lost", f"others for {len(lost) - ROWS} more reasons", "red")


def _devices(picture: Picture, rows: Sequence[NodeRow]) -> Iterator[Line]:
    for tokens, where in _alike(rows, lambda cell: cell.holding == "shared"):
        text = f"{_named(tokens, where)}, each held by several processes"
        if len(where) == 1:
            indexes = {c.process.process_index for x in where[0].cells if x.holding == "shared" for c in x.claims}
            text = f"{_named(tokens, where)}, held by processes {', '.join(map(str, sorted(indexes)))}"
        yield labelled("shared", text, "red")
    worlds = () if picture.topology is None else picture.topology.worlds
    if any(world.phase is Phase.RUNNING for world in worlds):
        for tokens, where in _alike(rows, _is_idle):
            yield labelled("idle", f"{_named(tokens, where)}, used by no process", "yellow")


def _is_idle(cell: Cell) -> bool:
    return cell.holding in ("idle", "left", "dead")


def _alike(rows: Sequence[NodeRow], are: Callable[[Cell], bool]) -> list[tuple[tuple[str, ...], list[NodeRow]]]:
    """Return the tokens of such devices with the nodes that have the same ones, most nodes first."""
    found: dict[tuple[str, ...], list[NodeRow]] = {}
    for row in rows:
        if row.view.state == "ready" and (tokens := tuple(cell.token for cell in row.cells if are(cell))):
            found.setdefault(tokens, []).append(row)
    groups = sorted(found.items(), key=lambda item: -len(item[1]))
    rest = [row for _, group in groups[GROUPS:] for row in group]
    return groups[:GROUPS] + ([(("various",), rest)] if rest else [])


def _named(tokens: Sequence[str], where: Sequence[NodeRow]) -> str:
    devices = f"device{'s' if len(tokens) > 1 else ''} {', '.join(tokens)}"
    return f"{devices} of {'each of ' if len(where) > 1 else ''}{hosts([row.view.name for row in where])}"
