"""The starts that a picture shows: of its nodes, and of each generation of each world, with the tracks of each."""

from collections.abc import Iterator, Sequence
from math import inf

from eray._core.phase import COMPLETE, Phase
from eray._core.picture import Picture, Track
from eray._core.start import Row, Start
from eray._core.start_order import ALL_READY, FIRST_COLLECTIVE, FIRST_PROCESS, HEAD, NODE, PROCESS
from eray._core.topology import Restart, World


def label_of(track: Track, head: str) -> str:
    """Return what people read for a track."""
    if track.process_index is not None:
        return f"process {track.process_index} on {track.node}"
    return f"{track.node} (head)" if track.node == head else track.node


def starts_of(picture: Picture) -> Iterator[Start]:
    """Yield the starts of a picture in their order: the nodes' alone, where no world is a part of that, comes first."""
    seen_until = picture.seen_until
    nodes = [track for track in picture.tracks if track.process_index is None]
    worlds: dict[tuple[str, int], list[Track]] = {}
    for track in picture.tracks:
        if track.process_index is not None:
            worlds.setdefault((track.world or "", track.generation or 1), []).append(track)
    if picture.purpose == "up" or not worlds:
        yield _nodes_start(picture, nodes, seen_until)
    for (name, number), tracks in sorted(worlds.items(), key=lambda item: (_begin(item[1]), item[0])):
        yield _world_start(picture, (name, number), nodes, tracks, seen_until)


def _nodes_start(picture: Picture, nodes: Sequence[Track], seen_until: float) -> Start:
    first: dict[str, float] = {}
    for track in nodes:
        if (at := _end_of(track, ALL_READY.span)) is not None:
            first[track.node] = min(at, first.get(track.node, inf))
    views = [view.since for view in picture.nodes if view.state == "ready" and view.since is not None]
    there = list(first.values()) or views
    is_complete = picture.phase == "up" or len(there) >= len(picture.nodes) > 0
    end = max(there, default=seen_until) if is_complete else seen_until
    rows = _node_rows(picture, nodes, end)
    there_too = {row.node for row in rows}
    rows += [Row(view.name, NODE, view.name) for view in picture.nodes if view.name not in there_too]
    begin = min(picture.began_at, end)
    return Start((None, None), rows, (), begin=begin, earliest=-inf, end=end, is_complete=is_complete)


def _world_start(
    picture: Picture, about: tuple[str, int], nodes: Sequence[Track], tracks: Sequence[Track], seen_until: float
) -> Start:
    name, number = about
    world = picture.topology.world(name) if picture.topology is not None else None
    restarts = {restart.generation: restart for restart in world.restarts} if world is not None else {}
    came_after, ended_by = restarts.get(number - 1), restarts.get(number)
    is_last = world is not None and world.generation == number
    count = world.process_count if world is not None and is_last else None
    if ended_by is not None:
        count, seen_until = ended_by.process_count, ended_by.failed_at or ended_by.restarted_at
    elif is_last and world is not None and world.phase is Phase.FAILED:
        seen_until = min(seen_until, world.timeline[-1][1] if world.timeline else seen_until)
    ends = [end for track in tracks if (end := _end_of(track, FIRST_COLLECTIVE.span)) is not None]
    ran_at = _ran_at(world) if world is not None and is_last else None
    is_complete = ran_at is not None or len(ends) == (count or len(tracks))
    end = (max(ends) if ends else ran_at or seen_until) if is_complete else seen_until
    begin, earliest = picture.began_at, -inf
    if came_after is not None:
        begin = earliest = came_after.failed_at or came_after.restarted_at
    elif picture.purpose == "up":
        begin = earliest = min(_begin(tracks), end)
    rows = [_process_row(track).take(track, end) for track in tracks]
    if not is_complete:
        there = {row.process_index for row in rows}
        if world is not None and is_last:  # those that have joined, and whose spans are still to come
            there |= {process.process_index for process in world.processes if process.state != "awaited"}
        rows += [Row(f"process {i}", PROCESS, "", i, is_unheard=True) for i in range(count or 0) if i not in there]
    node_rows = _node_rows(picture, nodes, end, earliest)
    _note_stop(node_rows, came_after)
    return Start(about, node_rows, rows, begin=min(begin, end), earliest=earliest, end=end, is_complete=is_complete)


def _process_row(track: Track) -> Row:
    order = PROCESS if track.process_index else FIRST_PROCESS
    return Row(label_of(track, ""), order, track.node, track.process_index)


def _node_rows(picture: Picture, tracks: Sequence[Track], end: float, since: float = -inf) -> list[Row]:
    rows: dict[str, Row] = {}  # one a node, also where a later supervisor has a track of its own
    for track in tracks:
        order = HEAD if track.node == picture.head else NODE
        rows.setdefault(track.node, Row(label_of(track, picture.head), order, track.node)).take(track, end, since)
    return list(rows.values())


def _note_stop(rows: Sequence[Row], restart: Restart | None) -> None:
    """Let the coordinator's times tell of the stop before a generation where no node does."""
    if restart is None or restart.failed_at is None or any("stop" in row.spans for row in rows):
        return
    for row in rows:
        if row.order is HEAD:
            row.spans["stop"] = restart.failed_at, max(restart.failed_at, restart.restarted_at)


def _ran_at(world: World) -> float | None:
    return next((at for phase, at in world.timeline if phase in COMPLETE), None)


def _end_of(track: Track, name: str) -> float | None:
    return min((span.end for span in track.spans if span.name == name and span.end is not None), default=None)


def _begin(tracks: Sequence[Track]) -> float:
    return min((span.begin for track in tracks for span in track.spans), default=inf)
