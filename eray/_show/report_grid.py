"""Draw the nodes as rows and their devices as cells, each with the process that holds it."""

from collections import Counter
from collections.abc import Sequence

from eray._core.picture import Picture
from eray._show.markup import Html, join, tag
from eray._show.node_rows import NodeRow
from eray._show.ownership import Cell, Claim
from eray._show.wording import counted, folded

MARKS = {"running": "", "starting": "…", "left": "✓", "dead": "✕", "shared": "2×", "open": "?", "idle": "○"}
"""What stands beside the process in a cell, so that colour is not needed to read it."""
MEANINGS = {
    "running": "held by a running process",
    "starting": "its process is starting",
    "left": "its process left in good order",
    "dead": "its process failed or died",
    "shared": "held by several processes",
    "open": "JAX decides in the process",
    "idle": "held by nobody",
}
NODE_MARKS = {"awaited": "…", "reported": "↑", "ready": "✓", "lost": "✕"}
NODE_MEANINGS = {
    "awaited": "the node did not report yet",
    "reported": "the node's Ray starts",
    "ready": "the node is ready",
    "lost": "the node is lost",
}
TROUBLE_FIRST = 64
"""With more nodes those with trouble stand first."""


def grid(picture: Picture, rows: Sequence[NodeRow]) -> Html:
    """Return the legend, which is the filter too, and the table."""
    if not rows:
        return tag("p", "No node is known.")
    worlds = () if picture.topology is None else picture.topology.worlds
    several = len(worlds) > 1
    width = max(len(row.cells) for row in rows)
    order = list(enumerate(rows))
    caption = "Nodes and devices; a cell names the process that holds the device"
    if len(rows) > TROUBLE_FIRST:
        order.sort(key=lambda pair: not pair[1].troubled)
        caption += "; nodes with trouble first"
    body = [_row(row, at, width, is_head=row.view.name == picture.head, several=several) for at, row in order]
    made = tag("table", tag("caption", caption), _head(width), tag("tbody", *body), id="grid")
    box = tag("div", made, class_="wide tall", tabindex=0, role="region", aria_label="nodes and devices")
    named = ", ".join(f"{_letter(at)}: {world.name}" for at, world in enumerate(worlds))
    letters = tag("p", f"Letters name the worlds. {named}", class_="quiet") if several else ""
    return join([_legend(rows), letters, box])


def _head(width: int) -> Html:
    over = [
        tag("th", "node", scope="col", rowspan=2),
        tag("th", "state", scope="col", rowspan=2),
        *([tag("th", "device", scope="colgroup", colspan=width)] if width else []),
        tag("th", "processes", scope="col", rowspan=2),
    ]
    return tag("thead", tag("tr", *over), tag("tr", *(tag("th", at, scope="col", class_="d") for at in range(width))))


def _row(row: NodeRow, at: int, width: int, *, is_head: bool, several: bool) -> Html:
    state = row.view.state
    mark = tag("span", NODE_MARKS[state], class_="m", aria_hidden="true")
    devices = [_cell(cell, several) for cell in row.cells]
    if len(devices) < width:
        devices.append(tag("td", class_="none", colspan=width - len(devices)))
    return tag(
        "tr",
        tag("th", tag("span", row.view.name, class_="n"), tag("small", "head") if is_head else "", scope="row"),
        tag("td", state, " ", mark, class_=f"s {state}"),
        *devices,
        tag("td", _processes(row.claims, several), class_="p"),
        data_s=" ".join([*sorted(row.states), *(["trouble"] if row.troubled else [])]),
        data_i=at,
    )


def _cell(cell: Cell, several: bool) -> Html:
    held = "+".join(_index(claim, several) for claim in cell.claims[:3])
    held += "+" if len(cell.claims) > 3 else ""
    mark = MARKS[cell.holding] if cell.holding != "shared" else f"{len(cell.claims)}×"
    if not mark:
        return tag("td", held, class_=cell.holding)
    said = tag("span", MEANINGS[cell.holding], class_="vh")
    return tag("td", held, tag("span", mark, class_="m", aria_hidden="true"), said, class_=cell.holding)


def _index(claim: Claim, several: bool) -> str:
    return f"{_letter(claim.world) if several else ''}{claim.process.process_index}"


def _letter(world: int) -> str:
    return chr(ord("A") + world) if world < 26 else f"W{world}."


def _processes(claims: Sequence[Claim], several: bool) -> Html:
    groups: dict[tuple[int, str], list[int]] = {}
    for claim in claims:
        groups.setdefault((claim.world, claim.process.state), []).append(claim.process.process_index)
    said = []
    for (world, state), indexes in sorted(groups.items()):
        words = f"{_letter(world) + ' ' if several else ''}{folded(indexes)} {state}"
        bad = state in ("dead", "failed")
        said.append(tag("strong", f"{words} ✕", class_="bad") if bad else words)
    return join(said, "; ")


def _legend(rows: Sequence[NodeRow]) -> Html:
    count = Counter(state for row in rows for state in row.states)
    choices = [_choice("", "all", "", len(rows)), _choice("trouble", "trouble", "!", sum(row.troubled for row in rows))]
    choices += [_choice(state, MEANINGS[state], mark, count[state]) for state, mark in MARKS.items()]
    choices += [_choice(state, NODE_MEANINGS[state], mark, count[state]) for state, mark in NODE_MARKS.items()]
    search = tag(
        "p",
        tag("label", "Node ", tag("input", type="search", id="search", autocomplete="off", spellcheck="false")),
        tag("span", counted(len(rows), "node"), id="shown", role="status"),
        class_="tools",
        hidden=True,
    )
    legend = tag("legend", "Legend: how many nodes have such a device, process or state")
    return join([search, tag("fieldset", legend, *choices, class_="legend")])


def _choice(state: str, meaning: str, mark: str, count: int) -> Html:
    swatch = tag("span", mark or ("7" if state else "∗"), class_=f"swatch {state}", aria_hidden="true")
    radio = tag("input", type="radio", name="state", value=state, checked=not state, hidden=True)
    class_ = None if count else "zero"
    return tag("label", radio, swatch, tag("span", meaning), tag("b", f"{count:,}"), class_=class_)
