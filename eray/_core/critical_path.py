"""Find what a start waited for: the chain of spans, from track to track, whose times add up to the whole.

It is walked backwards, from the first collective to the beginning: of all that a span needed (``start_order``), what
was over last is what it waited for.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from eray._core.picture import Picture
from eray._core.start import Start
from eray._core.starts import starts_of

UNACCOUNTED = "unaccounted"


@dataclass(frozen=True)
class Step:
    """A part of the path: what was waited for from ``begin`` to ``end``, in unix seconds on the head's clock.

    Attributes:
        where: the process, or the node whose supervisor it is.
        span: a name of ``picture.SPANS``, or UNACCOUNTED where no span tells.
        before: where unaccounted, the span that came then.
        share: of the whole path, 0 to 1.
    """

    where: str
    span: str
    begin: float
    end: float
    share: float = 0.0
    before: str | None = None

    @property
    def seconds(self) -> float:
        """How long it took."""
        return self.end - self.begin

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON types."""
        about = {"where": self.where, "span": self.span, "before": self.before, "begin": self.begin, "end": self.end}
        return about | {"seconds": round(self.seconds, 6), "share": round(self.share, 6)}


@dataclass(frozen=True)
class CriticalPath:
    """What one start was spent on; the steps follow each other without gaps from ``begin`` to ``end``.

    Attributes:
        world, generation: whose start; None where the nodes alone started, as of ``eray up``.
        count: the processes, or the nodes.
        is_complete: whether it came to its end: the first collective was possible, or all nodes were ready. Else
            ``end`` is when that was seen, or when the world failed, and the last step is what was waited for then.
    """

    world: str | None
    generation: int | None
    count: int
    begin: float
    end: float
    is_complete: bool
    steps: tuple[Step, ...]

    @property
    def seconds(self) -> float:
        """How long the start took."""
        return self.end - self.begin

    @property
    def longest(self) -> Step | None:
        """The step that took longest."""
        return max(self.steps, key=lambda step: step.seconds, default=None)

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON types."""
        about = {"world": self.world, "generation": self.generation, "count": self.count, "begin": self.begin}
        about |= {"end": self.end, "seconds": round(self.seconds, 6), "is_complete": self.is_complete}
        return about | {"steps": [step.to_json() for step in self.steps]}


def critical_paths(picture: Picture) -> tuple[CriticalPath, ...]:
    """Return the path of each start in the picture: the nodes' where no world is part of it, then each generation's."""
    return tuple(_path(start) for start in starts_of(picture))


def _path(start: Start) -> CriticalPath:
    steps = tuple(_steps(start))[::-1]
    begin = min([start.begin, *(step.begin for step in steps[:1])])
    whole_s = start.end - begin
    steps = tuple(replace(step, share=step.seconds / whole_s) for step in steps)
    about = (start.world, start.generation, start.count)
    return CriticalPath(*about, begin, start.end, start.is_complete, steps)


def _steps(start: Start) -> Iterator[Step]:
    """Yield the steps, the last first; those that take no time are left out."""
    event, at = start.goal(), start.end
    where = event.row.label if event is not None else f"every {'node' if start.world is None else 'process'}"
    if event is not None and event.at < at:
        yield from _step(where, UNACCOUNTED, event.at, at)
        at = event.at
    seen: set[tuple[int, str, bool]] = set()
    while event is not None and at > start.earliest and event.key not in seen:
        seen.add(event.key)
        row, span, where = event.row, event.span, event.row.label
        then, begin = None, row.spans[span][0] if span in row.spans else at
        if not event.begun and begin < at:
            then = start.last(row, row.waits_for(span), begun_after=begin, by=at)
            left = max(begin if then is None else min(then.at, at), start.earliest)
            yield from _step(where, span, left, at)
            at = left
        if then is None:
            then = start.last(row, row.needs(span), by=at)
            until = start.begin if then is None else max(then.at, start.earliest)
            yield from _step(where, UNACCOUNTED, until, at, span)
            at = min(at, until)
        event = then
    yield from _step(where, UNACCOUNTED, start.begin, at)


def _step(where: str, span: str, begin: float, end: float, before: str | None = None) -> Iterator[Step]:
    if end > begin:
        yield Step(where, span, begin, end, before=before)
