"""What was over when in one start, on whose track."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

from eray._core.picture import Track
from eray._core.start_order import ALL_READY, FIRST_COLLECTIVE, HEAD, Need, Order, Whose

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


class Start:
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
        self.world, self.generation = about
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

    @property
    def rows(self) -> list[Row]:
        """All tracks, the nodes' first."""
        return [*self._rows[Whose.EVERY_NODE], *self._rows[Whose.EVERY_PROCESS]]

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
