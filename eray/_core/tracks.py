"""Note what the time of a start is spent on, and bring the notes of several clocks together.

Processes use it while they start, so it loads nothing heavy. A span is a row ``[name, begin, end]`` in seconds of the
clock that the recorder was given, ``end`` None while it lasts; ``_core/picture.py`` has the names.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from math import isfinite
from typing import Any

Clock = Callable[[], float]
Row = list[Any]
"""``[name, begin, end]``."""


def steady(unix: Clock, monotonic: Clock) -> Clock:
    """Return a clock of unix seconds that goes on evenly, however the machine's clock is set meanwhile."""
    ahead_s = unix() - monotonic()
    return lambda: monotonic() + ahead_s


class Recorder:
    """The spans of one process or supervisor, in the order of their begin.

    Threads may record at the same time, each its own names: what is shared are single operations on a list and a dict.

    >>> times = iter((10.0, 11.5))
    >>> spans = Recorder(lambda: next(times))
    >>> with spans.during("attach"):
    ...     pass
    >>> spans.rows()
    [['attach', 10.0, 11.5]]
    """

    def __init__(self, clock: Clock) -> None:
        """``clock`` tells the time where a call does not."""
        self._clock = clock
        self._rows: list[Row] = []
        self._open: dict[str, Row] = {}

    def begin(self, name: str, now: float | None = None) -> None:
        """Note that something begins; where it lasts already, that earlier one ends."""
        at = self._clock() if now is None else now
        self.end(name, at)
        row: Row = [name, at, None]
        self._open[name] = row
        self._rows.append(row)

    def end(self, name: str, now: float | None = None) -> None:
        """Note that something ends; nothing happens where it did not begin, for no start may fail by its notes."""
        row = self._open.pop(name, None)
        if row is not None:
            row[2] = max(self._clock() if now is None else now, row[1])

    def add(self, name: str, begin: float, end: float) -> None:
        """Note what is over already, as the time before this process could note anything."""
        self._rows.append([name, begin, max(begin, end)])

    @contextmanager
    def during(self, name: str) -> Iterator[None]:
        """Note a block, also one that is left by an exception."""
        self.begin(name)
        try:
            yield
        finally:
            self.end(name)

    def rows(self) -> list[Row]:
        """Return a copy of the spans, for a message."""
        return [list(row) for row in self._rows]


def checked(rows: object) -> list[Row]:
    """Return those of the rows of a message that make sense: a wrong one is dropped, an end before its begin moved."""
    found = []
    for row in rows if isinstance(rows, list | tuple) else ():
        if not isinstance(row, list | tuple) or len(row) != 3:
            continue
        name, begin, end = row
        if isinstance(name, str) and _is_time(begin) and (end is None or _is_time(end)):
            found.append([name, float(begin), None if end is None else float(max(begin, end))])
    return found


def offset_of(asked_at: float, their_clock: float, answered_at: float) -> float:
    """Return how far another clock is ahead of ours, in seconds.

    It was read between our asking and the answer, so taken for the middle of both (as NTP does): wrong by at most half
    the round trip.

    >>> offset_of(10.0, 110.5, 11.0)
    100.0
    """
    return their_clock - (asked_at + answered_at) / 2


def best_offset(samples: Iterable[tuple[float, float, float]]) -> float | None:
    """Return the offset by the sample ``(asked_at, their_clock, answered_at)`` of the shortest round trip.

    None where there is no sample, or our clock was set back during each.
    """
    usable = [sample for sample in samples if sample[2] >= sample[0]]
    return offset_of(*min(usable, key=lambda sample: sample[2] - sample[0])) if usable else None


def shifted(rows: Iterable[Row], offset_s: float) -> list[Row]:
    """Return spans on our clock that were taken on one that is ``offset_s`` ahead of it."""
    return [[name, begin - offset_s, None if end is None else end - offset_s] for name, begin, end in rows]


def _is_time(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
