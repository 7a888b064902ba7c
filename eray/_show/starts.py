"""Divide what everybody did into starts, each drawn as one chart, and choose who is worth looking at first."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite

from eray._core.picture import Picture, Span, Track

STOP = "stop"
WAITS = ("lock", "roll-call", "ready", "attach", "join", "address", "all running")
"""Spans in which one waits for others rather than works."""
SLOWEST_NODES = 6
SLOWEST_PROCESSES = 10
ALL_ROWS = 40
"""A start with no more rows is shown whole."""


@dataclass(frozen=True)
class Start:
    """What was done from ``begin`` to ``end`` (unix seconds) to bring up the cluster or a generation of a world.

    ``rows`` are indexes into the picture's tracks, by node and process; ``chosen`` those to show first: the head and
    its first process, the slowest nodes, the slowest processes, and the nodes of these. ``stopping``: it is the end,
    with the spans ``stop``.
    """

    label: str
    begin: float
    end: float
    rows: tuple[int, ...]
    chosen: tuple[int, ...]
    stopping: bool = False


def starts(picture: Picture) -> tuple[Start, ...]:
    """Return the starts, oldest first, and at last the end where that was recorded.

    The nodes' supervisors belong to the first, with every world that began before they were done.
    """
    tracks = picture.tracks
    nodes = [at for at, track in enumerate(tracks) if track.process_index is None and _active(track)]
    groups: dict[tuple[str, int], list[int]] = {}
    for at, track in enumerate(tracks):
        if track.process_index is not None and _active(track):
            groups.setdefault((track.world or "", track.generation or 1), []).append(at)
    nodes_end = max((_end(track, picture) for track in _of(tracks, nodes)), default=0.0)
    first, later = list(nodes), []
    for (world, generation), rows in groups.items():
        begin = min(span.begin for track in _of(tracks, rows) for span in _active(track))
        if nodes and begin <= nodes_end and generation == 1:
            first += rows
        else:
            later.append((begin, f"world {world}, generation {generation}", rows))
    found = [_start(picture, "first start", first)] if first else []
    found += [_start(picture, label, rows) for _, label, rows in sorted(later)]
    stopping = [at for at, track in enumerate(tracks) if _stopping(track)]
    return (*found, *([_start(picture, "the end", stopping, stopping=True)] if stopping else []))


def lateness(track: Track, taken_at: float) -> tuple[float, float]:
    """Return how late a track was done with its own work, then how late it began its last wait; more is slower.

    What waits for everybody ends at the same time for all, so what counts is when the work before it was done.
    """
    work = [taken_at if span.end is None else span.end for span in _active(track) if span.name not in WAITS]
    waits = [span.begin for span in _active(track) if span.name in WAITS]
    return max(work, default=0.0), max(waits, default=0.0)


def _start(picture: Picture, label: str, rows: Iterable[int], *, stopping: bool = False) -> Start:
    tracks = picture.tracks
    ordered = sorted(rows, key=lambda at: _place(tracks[at]))
    shown = [span for track in _of(tracks, ordered) for span in (_stopping(track) if stopping else _active(track))]
    begin = min(span.begin for span in shown)
    end = max(picture.taken_at if span.end is None else span.end for span in shown)
    return Start(label, begin, max(end, begin + 0.001), tuple(ordered), _chosen(picture, ordered), stopping)


def _chosen(picture: Picture, rows: Sequence[int]) -> tuple[int, ...]:
    if len(rows) <= ALL_ROWS:
        return tuple(rows)
    tracks = picture.tracks

    nodes = [at for at in rows if tracks[at].process_index is None]
    processes = [at for at in rows if tracks[at].process_index is not None]
    late = _late(picture, processes, SLOWEST_PROCESSES)
    heads = [at for at in processes if tracks[at].node == picture.head]
    names = {tracks[at].node for at in late} | {picture.head}
    chosen = {at for at in nodes if tracks[at].node in names}
    chosen |= {*heads[:1], *late, *_late(picture, nodes, SLOWEST_NODES)}
    return tuple(at for at in rows if at in chosen)


def _late(picture: Picture, rows: Sequence[int], most: int) -> list[int]:
    """Return the latest of the rows; those that are no later than half of all are not late."""
    keys = {at: lateness(picture.tracks[at], picture.taken_at) for at in rows}
    usual = sorted(keys.values())[len(rows) // 2] if rows else (0.0, 0.0)
    return sorted((at for at in rows if keys[at] > usual), key=lambda at: keys[at], reverse=True)[:most]


def _place(track: Track) -> tuple[float, str, str, int]:
    rank = float("inf") if track.node_rank is None else track.node_rank
    return rank, track.node, track.world or "", -1 if track.process_index is None else track.process_index


def _active(track: Track) -> list[Span]:
    return [span for span in track.spans if span.name != STOP and isfinite(span.begin)]


def _stopping(track: Track) -> list[Span]:
    return [span for span in track.spans if span.name == STOP and isfinite(span.begin)]


def _end(track: Track, picture: Picture) -> float:
    return max(picture.taken_at if span.end is None else span.end for span in _active(track))


def _of(tracks: Sequence[Track], rows: Iterable[int]) -> list[Track]:
    return [tracks[at] for at in rows]
