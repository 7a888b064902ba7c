"""Say in words and tables what the starts of a cluster were spent on."""

from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

from eray._core.critical_path import UNACCOUNTED, CriticalPath, Step, critical_paths
from eray._core.phase import STARTED
from eray._core.picture import SPANS, Picture
from eray._core.start import BEFORE_CONNECT
from eray._core.starts import label_of
from eray._core.topology import World
from eray._show.lines import Line
from eray._show.wording import clean, counted, table
from eray._show.words import PLAIN

DOING = {
    "program": "run up to eray.connect()",
    "environment": "read its environment",
    "supervisor": "have its node's supervisor",
    "lock": "take its run directory",
    "roll-call": "pass the roll-call",
    "gcs": "start Ray's GCS",
    "raylet": "start its raylet",
    "import ray": "import Ray",
    "coordinator": "start the coordinator",
    "ready": "hear that its node is ready",
    "attach": "attach to Ray",
    "import jax": "import JAX",
    "join": "get its place from the coordinator",
    "port": "reserve a port for JAX's service",
    "publish": "publish the address of JAX's service",
    "address": "hear the address of JAX's service",
    "dial": "reach JAX's service",
    "initialise": "return from jax.distributed.initialize()",
    "check": "start JAX's backend",
    "all running": "hear that all run",
    "stop": "end the processes of the generation before",
}
SHORT_S = 0.005
"""Steps that the summary adds up."""
SECONDS = ("seconds", "median", "longest", "for")
Table = Sequence[tuple[str, ...]]


def timeline_text(picture: Picture, width: int | None = None) -> str:
    """Return the summary: for each start its steps, what it waited for longest, and the spans' usual and longest.

    Its lines have at most ``width`` characters; None is without end.
    """
    parts = ["\n".join(_fitted(f"{PLAIN[0].upper()}{PLAIN[1:]}.", width))] if picture.is_plain else []
    for path in _paths(picture):
        shown = [step for step in path.steps if step.seconds >= SHORT_S]
        rows = [(_name(step), step.where, f"{step.seconds:.2f}", _percent(step.share)) for step in shown]
        if len(shown) < len(path.steps):
            short = [step for step in path.steps if step.seconds < SHORT_S]
            spent, share = sum(step.seconds for step in short), sum(step.share for step in short)
            rows.append((f"{len(short)} shorter than {SHORT_S:g} s", "", f"{spent:.2f}", _percent(share)))
        rows.append(("total", "", f"{path.seconds:.2f}", _percent(1.0)))
        steps = _table((("step", "where", "seconds", "share"), *rows), right=(2, 3), width=width)
        says = _fitted(sentence(path, goes_on=_goes_on(picture, path)), width)
        if (cause := _cause(picture, path)) is not None:
            says += _fitted(f"It failed: {cause}", width)
        parts += ["\n".join((*_fitted(_heading(picture, path), width), "", *steps, "", *says))]
    spread = [(s, on, f"{half:.2f}", f"{most:.2f}", where) for s, on, half, most, where in spreads(picture)]
    if spread:
        head = ("span", "on", "median", "longest", "where")
        parts.append("\n".join(_table((head, *spread), right=(2, 3), width=width)))
    open_spans = [(name, on, f"{longest:.2f}", where) for name, on, longest, where in lasting(picture)]
    if open_spans:
        parts.append("\n".join(_table((("goes on", "on", "for", "where"), *open_spans), right=(2,), width=width)))
    return "\n\n".join(parts)


def timeline_json(picture: Picture) -> dict[str, Any]:
    """Return the same as JSON types; times are unix seconds on the head's clock."""
    names = ("span", "on", "median", "longest", "where")
    return {
        "paths": [
            path.to_json() | {"says": sentence(path, goes_on=_goes_on(picture, path))} for path in _paths(picture)
        ],
        "spans": [dict(zip(names, row, strict=True)) for row in spreads(picture)],
    }


def sentence(path: CriticalPath, *, goes_on: bool = False) -> str:
    """Say in one sentence what a start waited for longest; of one that is not over, what it waits for."""
    aim = "All nodes' being ready" if path.world is None else "The first collective"
    step = path.longest
    if step is None:
        return f"{aim}: no time is known to have been spent on it{' so far' if goes_on else ''}."
    unknown = all(each.span == UNACCOUNTED for each in path.steps)
    last = path.steps[-1]
    if goes_on:
        yet = "Not all nodes are ready yet" if path.world is None else "The first collective is not possible yet"
        more = "what it waits for is told when that is over" if unknown else f"it waits for {_what(last)}"
        return f"{yet}: {more}{'' if unknown else f', for {last.seconds:.2f} s so far'}."
    if not path.is_complete and unknown:
        return f"{aim} did not come within {path.seconds:.2f} s, and nothing was recorded of what it waited for."
    if not path.is_complete:
        return f"{aim} did not come: at the end it had waited {last.seconds:.2f} s for {_what(last)}."
    much = f"{step.seconds:.2f} of {path.seconds:.2f} s ({_percent(step.share)})"
    return f"{aim} waited longest for {_what(step)}: {much}."


def spreads(picture: Picture) -> Iterator[tuple[str, str, float, float, str]]:
    """Yield for each span: its name, on how many tracks, the median and the longest seconds, and where that was.

    Spans that last still do not count. Those of nodes and of processes are told apart.
    """
    for name, on, times, longest, where in _grouped(picture, None):
        yield name, on, round(median(times), 6), round(longest, 6), where


def lasting(picture: Picture) -> Iterator[tuple[str, str, float, str]]:
    """Yield for each span that lasts still: its name, on how many tracks, since how many seconds, and where longest."""
    if picture.phase != "ended":
        for name, on, _, longest, where in _grouped(picture, picture.taken_at):
            yield name, on, longest, where


def _grouped(picture: Picture, now: float | None) -> Iterator[tuple[str, str, list[float], float, str]]:
    """Yield the times of the spans that are over by their name, or of those that last still up to ``now``."""
    found: dict[tuple[str, str], list[tuple[float, int]]] = {}
    for number, track in enumerate(picture.tracks):
        kind = "nodes" if track.process_index is None else "processes"
        for span in track.spans:
            end = span.end if now is None else max(now, span.begin) if span.end is None else None
            if end is not None:
                found.setdefault((span.name, kind), []).append((end - span.begin, number))
    usual = {name: place for place, name in enumerate(SPANS)}
    for (name, kind), times in sorted(found.items(), key=lambda item: (usual.get(item[0][0], len(usual)), item[0])):
        longest, number = max(times, key=lambda time: (time[0], -time[1]))
        on = f"{len(times)} {kind if len(times) > 1 else kind.removesuffix('es' if kind == 'processes' else 's')}"
        yield name, on, [time for time, _ in times], longest, label_of(picture.tracks[number], picture.head)


def _paths(picture: Picture) -> tuple[CriticalPath, ...]:
    """Return the starts that somebody waited for: a plain program may end before the nodes are ready."""
    return tuple(path for path in critical_paths(picture) if path.is_complete or not picture.is_plain)


def _goes_on(picture: Picture, path: CriticalPath) -> bool:
    """Tell whether a start is not over, and may still come to its end."""
    if path.is_complete or picture.phase == "ended":
        return False
    world = _world_of(picture, path)
    return world is None or (world.generation == path.generation and world.phase not in STARTED)


def _world_of(picture: Picture, path: CriticalPath) -> World | None:
    return None if path.world is None or picture.topology is None else picture.topology.world(path.world)


def _cause(picture: Picture, path: CriticalPath) -> str | None:
    """Return the first line of why a start did not come to its end, as far as that is told of its generation."""
    if path.is_complete:
        return None
    world = _world_of(picture, path)
    cause = None if picture.ending is None else picture.ending.cause
    if world is not None:
        cause = world.failure or cause if world.generation == path.generation else None
    return clean(cause).splitlines()[0] if cause else None


def _there(picture: Picture, path: CriticalPath) -> str:
    """Say what is there of a start that is not over."""
    if path.world is None:
        ready = sum(view.state == "ready" for view in picture.nodes)
        reported = sum(view.state in ("ready", "reported") for view in picture.nodes)
        return f"{reported:,} reported and {ready:,} ready"
    world = _world_of(picture, path)
    joined = 0 if world is None else sum(process.state != "awaited" for process in world.processes)
    return f"{joined:,} joined"


def _heading(picture: Picture, path: CriticalPath) -> str:
    one, many = ("node", "nodes") if path.world is None else ("process", "processes")
    who = counted(path.count, one, many) if path.count else f"no {one} is known yet"
    whose = "the nodes" if path.world is None else f"world {path.world}, generation {path.generation}"
    if path.is_complete:
        came = "all ready" if path.world is None else "first collective possible"
        return f"{whose}: {who}, {came} after {path.seconds:.2f} s"
    if _goes_on(picture, path):
        return f"{whose}: {who}, {_there(picture, path)} so far; the start goes on, for {path.seconds:.2f} s now"
    came = "not all ready" if path.world is None else "no first collective"
    return f"{whose}: {who}, {came} when it ended after {path.seconds:.2f} s"


def _named(head: Sequence[str], row: Sequence[str]) -> str:
    told = [f"{name} {cell}" if name in SECONDS[1:] else cell for name, cell in zip(head, row, strict=True)]
    return ", ".join(f"{cell} s" if name in SECONDS else cell for name, cell in zip(head, told, strict=True) if cell)


def _what(step: Step) -> str:
    if _is_unheard(step):
        return f"{step.where} to join"
    if step.span == UNACCOUNTED:
        return f"something that no span tells of, {_name(step).partition(', ')[2] or 'at the end'}, {step.where}"
    return f"{step.where} to {DOING.get(step.span, step.span)}"


def _name(step: Step) -> str:
    if _is_unheard(step):
        return "its program, before eray.connect()"
    return step.span if step.before is None else f"{step.span}, before {step.before}"


def _is_unheard(step: Step) -> bool:
    """Tell whether it is a process of which nothing has been heard."""
    return step.span == UNACCOUNTED and step.before == BEFORE_CONNECT[-1]


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _fitted(text: str, width: int | None) -> list[str]:
    return Line(text).wrapped(width)


def _table(rows: Table, right: Sequence[int], width: int | None) -> list[str]:
    """Return a table; where that is too wide, each row as a sentence that names its numbers."""
    lines = table(rows, right)
    if width is not None and max(map(len, lines)) > width:
        return [line for row in rows[1:] for line in _fitted(_named(rows[0], row), width)]
    return lines
