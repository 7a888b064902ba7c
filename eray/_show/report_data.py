"""Pack what the page's script draws on demand: short rows, each text once."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from eray._core.picture import Picture, Span
from eray._show.node_rows import NodeRow
from eray._show.ownership import Cell, Claim, state_of
from eray._show.starts import Start
from eray._show.wording import clean


@dataclass
class _Texts:
    """Texts by number."""

    numbers: dict[str, int] = field(default_factory=dict)

    def number(self, value: object) -> int:
        return self.numbers.setdefault(clean("" if value is None else str(value)), len(self.numbers))


def data(picture: Picture, rows: Sequence[NodeRow], starts: Sequence[Start]) -> str:
    """Return JSON for the script: ``texts``, and rows of numbers that point into them.

    - ``nodes``: name, state, seconds from the begin, reason, [name, value, …] of what is known, cells, processes
    - a cell: token, kind, uuid, holding, assumed, [world, index, …]
    - a process: world, index, pid, state, visible, ids, rule
    - ``tracks``: node, world, index, [span, begin, length, …] in ms from the begin; a length of -1 still lasts
    - ``starts``: label, begin, end in ms, stopping, rows, chosen
    """
    texts, began_at = _Texts(), picture.began_at
    worlds = () if picture.topology is None else picture.topology.worlds
    packed = {
        "worlds": [texts.number(world.name) for world in worlds],
        "nodes": [_node(texts, row, began_at) for row in rows],
        "tracks": [
            [
                texts.number(track.node),
                texts.number(track.world),
                -1 if track.process_index is None else track.process_index,
                _spans(texts, track.spans, began_at),
            ]
            for track in picture.tracks
        ],
        "starts": [
            [
                texts.number(start.label),
                _ms(start.begin - began_at),
                _ms(start.end - began_at),
                int(start.stopping),
                list(start.rows),
                list(start.chosen),
            ]
            for start in starts
        ],
        "head": texts.number(picture.head),
        "taken": _ms(picture.taken_at - began_at),
    }
    return in_script(packed | {"texts": list(texts.numbers)})


def in_script(value: Any) -> str:
    """Return a value as JSON that can stand in a script element: no text in it ends or opens an element."""
    made = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return made.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _node(texts: _Texts, row: NodeRow, began_at: float) -> list[Any]:
    view, node = row.view, row.node
    known: list[tuple[str, object]] = []
    if node is not None:
        ports = ", ".join(f"{name} {port}" for name, port in node.ports.items())
        memory = None if node.memory_bytes is None else f"{node.memory_bytes / 2**30:.0f} GiB"
        known = [
            ("rank", node.node_rank),
            ("host name", node.hostname),
            ("address", node.address),
            ("Ray node", node.ray_node_id),
            ("CPUs", node.cpus),
            ("memory", memory),
            ("ports", ports),
        ]
    return [
        texts.number(view.name),
        texts.number(view.state),
        None if view.since is None else _ms(view.since - began_at),
        texts.number(view.reason),
        _numbers(texts, (each for pair in known if pair[1] not in (None, "") for each in pair)),
        [_cell(texts, cell) for cell in row.cells],
        [_process(texts, claim) for claim in row.claims],
    ]


def _cell(texts: _Texts, cell: Cell) -> list[Any]:
    kind, uuid = ("", "") if cell.device is None else (cell.device.kind or cell.device.platform, cell.device.uuid)
    holders = [each for claim in cell.claims for each in (claim.world, claim.process.process_index)]
    return [*_numbers(texts, (cell.token, kind, uuid, cell.holding)), int(cell.assumed), holders]


def _process(texts: _Texts, claim: Claim) -> list[Any]:
    process = claim.process
    visible = "unset" if process.visible is None else ",".join(process.visible) or "none"
    ids = "JAX decides" if process.local_device_ids is None else ",".join(map(str, process.local_device_ids)) or "none"
    words = (process.state, state_of(process), visible, ids, process.device_rule or "not decided")
    return [claim.world, process.process_index, process.pid, *_numbers(texts, words)]


def _spans(texts: _Texts, spans: Sequence[Span], began_at: float) -> list[int]:
    return [
        each
        for span in spans
        if isfinite(span.begin)
        for each in (
            texts.number(span.name),
            _ms(span.begin - began_at),
            -1 if span.end is None else _ms(span.end - span.begin),
        )
    ]


def _numbers(texts: _Texts, words: Iterable[object]) -> list[int]:
    return [texts.number(word) for word in words]


def _ms(seconds: float) -> int:
    return round(seconds * 1000) if isfinite(seconds) else 0
