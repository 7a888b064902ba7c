"""The critical path of eray's best run, its phases on one clock, and the floor: what the same start could take.

The floor replays the best run: each span begins when the last of what it needed is over, as then, but does its own work
in the shortest time that this span took on such a track in any of the runs (own work: from when it had all that it
waited for, to its end; the pause before a span counts likewise). It tells what would be left if no phase were ever
slowed down by another one. Where the CPUs are the wall, that is the other floor: CPU seconds over CPUs.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import inf
from pathlib import Path

from eray._core.critical_path import critical_paths
from eray._core.picture import SPANS, Picture
from eray._core.start import Event, Row, Start
from eray._core.start_order import FIRST_COLLECTIVE, FIRST_PROCESS, HEAD, Need
from eray._core.starts import starts_of

Works = Mapping[tuple[str, str], tuple[float, float]]
"""By kind of track and span: the shortest pause before it and its shortest own work, in seconds."""


def newest_picture(directory: str, since: float) -> Picture | None:
    """Return how the cluster ended that has ended last, and after ``since``; None where none has."""
    kept = [path for path in Path(directory).glob("jobs/*/picture*.json") if path.stat().st_mtime >= since]
    newest = max(kept, key=lambda path: path.stat().st_mtime, default=None)
    return None if newest is None else Picture.model_validate_json(newest.read_bytes())


def show(way: str, pictures: Sequence[Picture], cpu_s: float | None) -> None:
    """Print the best run's path and phases, and the floors."""
    both = (zip(starts_of(picture), critical_paths(picture), strict=True) for picture in pictures)
    found = [(start, path) for pairs in both for start, path in pairs if path.world is not None and path.is_complete]
    if not found:
        return
    starts = [start for start, _ in found]
    best, path = min(found, key=lambda pair: pair[1].seconds)
    steps = ", ".join(f"{step.span} {step.seconds:.2f}" for step in path.steps if step.seconds >= 0.01)
    print(f"{way}, critical path of the best of {len(starts)}: {path.seconds:.2f} s: {steps}")
    for kind, name, begin, end in phases(best):
        print(f"  {kind:16} {name:12} {begin:6.2f} to {end:6.2f}")
    floor = replayed(best, shortest(starts)) - best.begin
    print(f"floor of that path, each phase at its shortest in these runs: {floor:.2f} s", end="")
    cpus = os.cpu_count() or 1
    print("" if cpu_s is None else f"; CPU seconds over {cpus} CPUs: {cpu_s / cpus:.2f} s", flush=True)


def phases(start: Start) -> Iterator[tuple[str, str, float, float]]:
    """Yield kind of track, span, its first begin and its last end on such tracks, in seconds since the start."""
    found: dict[tuple[str, str], tuple[float, float]] = {}
    for row in start.rows:
        for name, (begin, end) in row.spans.items():
            known = found.get((kind_of(row), name), (inf, -inf))
            found[kind_of(row), name] = min(begin, known[0]), max(end, known[1])
    order = {name: place for place, name in enumerate(SPANS)}
    for (kind, name), (begin, end) in sorted(found.items(), key=lambda item: (item[0][0], order[item[0][1]])):
        yield kind, name, begin - start.begin, end - start.begin


def kind_of(row: Row) -> str:
    """Return what a track is."""
    if row.process_index is None:
        return "head" if row.order is HEAD else "other nodes"
    return "process 0" if row.order is FIRST_PROCESS else "other processes"


def shortest(starts: Iterable[Start]) -> Works:
    """Return the shortest pause before each span and its shortest own work, by kind of track."""
    found: dict[tuple[str, str], tuple[float, float]] = {}
    for start in starts:
        for row in start.rows:
            for span, (begin, end) in row.spans.items():
                waited = max((event.at for event in events(start, row, row.waits_for(span), by=end)), default=-inf)
                ready = max((event.at for event in events(start, row, row.needs(span), by=begin)), default=start.begin)
                pause, work = max(begin - ready, 0.0), max(end - max(begin, waited), 0.0)
                known = found.get((kind_of(row), span), (inf, inf))
                found[kind_of(row), span] = min(pause, known[0]), min(work, known[1])
    return found


def replayed(start: Start, works: Works) -> float:
    """Return when all run, if each span did its own work in the shortest time."""
    known: dict[tuple[int, str, bool], float] = {}

    def at(event: Event) -> float:
        if event.key not in known:
            known[event.key] = start.begin  # for those that come here again meanwhile
            row, span = event.row, event.span
            pause, work = works[kind_of(row), span]
            begin, end = row.spans[span]
            needs = events(start, row, row.needs(span), by=begin)
            began = max((at(each) for each in needs), default=start.begin) + pause
            waits = () if event.begun else events(start, row, row.waits_for(span), by=end)
            known[event.key] = began if event.begun else max([began, *(at(each) for each in waits)]) + work
        return known[event.key]

    return max(at(Event(0.0, row, FIRST_COLLECTIVE.span)) for row in start.rows if FIRST_COLLECTIVE.span in row.spans)


def events(start: Start, row: Row, needs: Iterable[Need], *, by: float) -> list[Event]:
    """Return what was over of the needs, each one's last."""
    found = (start.last(row, (need,), by=by) for need in needs)
    return [event for event in found if event is not None and event.span in event.row.spans]


def as_json(pictures: Iterable[Picture]) -> list[object]:
    """Return the critical paths of all runs as JSON types."""
    return [path.to_json() for picture in pictures for path in critical_paths(picture)]
