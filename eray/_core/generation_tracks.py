"""The tracks of a picture, sorted by whose start they tell of, and what was over when on them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

from eray._core.phase import COMPLETE, Phase
from eray._core.picture import Picture, Track
from eray._core.start_order import ALL_READY, FIRST_COLLECTIVE, FIRST_PROCESS, HEAD, NODE, PROCESS, Need, Order, Whose
from eray._core.topology import Restart, World

SKEW_S = 0.1
"""By how much the clocks of two nodes may differ still: what ends this much after it was waited for, was waited for."""
BEFORE_CONNECT = ("program", "environment")


@dataclass(eq=False)
class Row:
    """A track of one start: the begin and end of each span; of those with one name the last.

    ``is_unheard``: a process of which nothing is known when a start that is not over is looked at.
    """

    label: str
    order: Mapping[str, Order]
    node: str
    process_index: int | None = None
    spans: dict[str, tuple[float, float]] = field(default_factory=dict)
    is_unheard: bool = False

    def needs(self, span: str) -> tuple[Need, ...]:
        """Return what a span needs to begin."""
        return self.order.get(span, Order()).after

    def waits_for(self, span: str) -> tuple[Need, ...]:
        """Return what a span that has begun needs to end."""
        return self.order.get(span, Order()).until

    def take(self, track: Track, end: float, since: float = -inf) -> "Row":
        """Take the spans of a track that lie between two times; those that last end with ``end``."""
        for span in track.spans:
            if span.begin <= end and (span.end is None or span.end >= since):
                self.spans[span.name] = span.begin, end if span.end is None else span.end
        return self


@dataclass(frozen=True)
class Event:
    """A span of a row ends at ``at``, or begins where ``begun``."""

    at: float
    row: Row
    span: str
    begun: bool = False

    @property
    def key(self) -> tuple[int, str, bool]:
        """What tells it from others."""
        return id(self.row), self.span, self.begun


class Generation:
    """One start: of a generation of a world, or of the nodes alone where ``world`` is None.

    ``begin`` and ``end`` are unix times. Nothing before ``earliest`` belongs to it.
    """

    def __init__(
        self,
        about: tuple[str | None, int | None],
        nodes: Sequence[Row],
        processes: Sequence[Row],
        *,
        begin: float,
        earliest: float,
        end: float,
        is_complete: bool,
    ) -> None:
        self.world, self.number = about
        self.begin, self.earliest, self.end, self.is_complete = begin, earliest, end, is_complete
        self.count = len(nodes) if self.world is None else len(processes)
        self._by_node: dict[str, list[Row]] = {}
        for row in processes:
            self._by_node.setdefault(row.node, []).append(row)
        self._node = {row.node: row for row in nodes}
        head = [row for row in nodes if row.order is HEAD]
        self._rows: dict[Whose, Sequence[Row]] = {
            Whose.HEAD: head,
            Whose.EVERY_NODE: nodes,
            Whose.OTHER_NODES: [row for row in nodes if row.order is not HEAD],
            Whose.PROCESS_0: [row for row in processes if row.process_index == 0],
            Whose.EVERY_PROCESS: processes,
        }
        self._known: dict[tuple[str, Whose, bool], Event | None] = {}

    def goal(self) -> Event | None:
        """Return the last process's (or node's) end of the start, None where nothing at all is known."""
        need = ALL_READY if self.world is None else FIRST_COLLECTIVE
        there = [row for row in self._rows[need.whose] if need.span in row.spans]
        if self.is_complete and there:  # the one that came last, where all ended at once
            row = max(there, key=lambda row: row.spans[need.span][::-1])
            return Event(row.spans[need.span][1], row, need.span)
        return self._of_all(need)

    def last(self, row: Row, needs: Iterable[Need], *, by: float, begun_after: float = -inf) -> Event | None:
        """Return which of a row's needs was over last, after one time and by the other; None where none was."""
        found: Event | None = None
        for need in needs:
            event = self._event(row, need, by + SKEW_S, frozenset())
            if event is not None and event.at > begun_after and (found is None or event.at > found.at):
                found = event
        return found

    def _event(self, row: Row, need: Need, by: float, seen: frozenset[tuple[int, str, bool]]) -> Event | None:
        match need.whose:
            case Whose.OWN:
                return self._of_row(row, need.span, need.begun, by, seen)
            case Whose.NODE:
                there = self._node.get(row.node)
                return None if there is None else self._of_row(there, need.span, need.begun, by, seen)
            case Whose.NODE_FIRST:
                ends = [each for each in self._by_node.get(row.node, ()) if need.span in each.spans]
                first = min(ends, key=lambda each: each.spans[need.span][1], default=None)
                return None if first is None else self._of_row(first, need.span, need.begun, by, seen)
            case _:
                event = self._of_all(need)
                return None if event is None or event.at > by else event

    def _of_row(
        self, row: Row, span: str, begun: bool, by: float, seen: frozenset[tuple[int, str, bool]]
    ) -> Event | None:
        if span in row.spans:
            at = row.spans[span][0 if begun else 1]
            return Event(at, row, span, begun) if at <= by else None
        if row.is_unheard and span not in BEFORE_CONNECT:
            return Event(self.end, row, BEFORE_CONNECT[-1], begun=True)  # all wait for it
        key = (id(row), span, begun)
        if key in seen:
            return None
        found: Event | None = None
        for need in row.needs(span) + (() if begun else row.waits_for(span)):
            if need.whose is Whose.NODE_FIRST:
                continue  # a supervisor that does not tell of its start may be there for long
            event = self._event(row, need, by, seen | {key})
            if event is not None and (found is None or event.at > found.at):
                found = event
        return found

    def _of_all(self, need: Need) -> Event | None:
        key = (need.span, need.whose, need.begun)
        if key not in self._known:
            self._known[key] = None  # for those that come here again meanwhile
            found: Event | None = None
            for row in self._rows[need.whose]:
                event = self._of_row(row, need.span, need.begun, inf, frozenset())
                if event is not None and (found is None or event.at > found.at):
                    found = event
            self._known[key] = found
        return self._known[key]


def label_of(track: Track, head: str) -> str:
    """Return what people read for a track."""
    if track.process_index is not None:
        return f"process {track.process_index} on {track.node}"
    return f"{track.node} (head)" if track.node == head else track.node


def generations_of(picture: Picture) -> Iterator[Generation]:
    """Yield the starts of a picture in their order: the nodes' alone, where no world is a part of that, comes first."""
    seen_until = picture.taken_at if picture.ending is None else picture.ending.at
    nodes = [track for track in picture.tracks if track.process_index is None]
    worlds: dict[tuple[str, int], list[Track]] = {}
    for track in picture.tracks:
        if track.process_index is not None:
            worlds.setdefault((track.world or "", track.generation or 1), []).append(track)
    if picture.purpose == "up" or not worlds:
        yield _nodes_start(picture, nodes, seen_until)
    for (name, number), tracks in sorted(worlds.items(), key=lambda item: (_begin(item[1]), item[0])):
        yield _generation(picture, (name, number), nodes, tracks, seen_until)


def _nodes_start(picture: Picture, nodes: Sequence[Track], seen_until: float) -> Generation:
    ready = [view.since for view in picture.nodes if view.state == "ready" and view.since is not None]
    is_complete = picture.phase != "starting" and len(ready) == len(picture.nodes) > 0
    ends = [end for track in nodes if (end := _end_of(track, ALL_READY.span)) is not None]
    end = max(ends or ready) if is_complete else seen_until
    rows = _node_rows(picture, nodes, end)
    begin = min(picture.began_at, end)
    return Generation((None, None), rows, (), begin=begin, earliest=-inf, end=end, is_complete=is_complete)


def _generation(
    picture: Picture, about: tuple[str, int], nodes: Sequence[Track], tracks: Sequence[Track], seen_until: float
) -> Generation:
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
        rows += [Row(f"process {i}", PROCESS, "", i, is_unheard=True) for i in range(count or 0) if i not in there]
    node_rows = _node_rows(picture, nodes, end, earliest)
    _note_stop(node_rows, came_after)
    return Generation(
        about, node_rows, rows, begin=min(begin, end), earliest=earliest, end=end, is_complete=is_complete
    )


def _process_row(track: Track) -> Row:
    order = PROCESS if track.process_index else FIRST_PROCESS
    return Row(label_of(track, ""), order, track.node, track.process_index)


def _node_rows(picture: Picture, tracks: Sequence[Track], end: float, since: float = -inf) -> list[Row]:
    return [
        Row(label_of(track, picture.head), HEAD if track.node == picture.head else NODE, track.node).take(
            track, end, since
        )
        for track in tracks
    ]


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
    return max((span.end for span in track.spans if span.name == name and span.end is not None), default=None)


def _begin(tracks: Sequence[Track]) -> float:
    return min((span.begin for track in tracks for span in track.spans), default=inf)
