"""Say in words and tables what the starts of a cluster were spent on."""

from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

from eray._core.critical_path import UNACCOUNTED, CriticalPath, Step, critical_paths
from eray._core.picture import SPANS, Picture
from eray._core.starts import label_of
from eray._show.wording import table
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
Table = Sequence[tuple[str, ...]]


def timeline_text(picture: Picture) -> str:
    """Return the summary: for each start its steps, what it waited for longest, and the spans' usual and longest."""
    parts = [f"{PLAIN[0].upper()}{PLAIN[1:]}."] if picture.is_plain else []
    for path in _paths(picture):
        shown = [step for step in path.steps if step.seconds >= SHORT_S]
        rows = [(_name(step), step.where, f"{step.seconds:.2f}", _percent(step.share)) for step in shown]
        if len(shown) < len(path.steps):
            short = [step for step in path.steps if step.seconds < SHORT_S]
            spent, share = sum(step.seconds for step in short), sum(step.share for step in short)
            rows.append((f"{len(short)} shorter than {SHORT_S:g} s", "", f"{spent:.2f}", _percent(share)))
        rows.append(("total", "", f"{path.seconds:.2f}", _percent(1.0)))
        steps = table((("step", "where", "seconds", "share"), *rows), right=(2, 3))
        parts += ["\n".join((_heading(path), "", *steps, "", sentence(path)))]
    spread = [(s, on, f"{half:.2f}", f"{most:.2f}", where) for s, on, half, most, where in spreads(picture)]
    if spread:
        parts.append("\n".join(table((("span", "on", "median", "longest", "where"), *spread), right=(2, 3))))
    return "\n\n".join(parts)


def timeline_json(picture: Picture) -> dict[str, Any]:
    """Return the same as JSON types; times are unix seconds on the head's clock."""
    names = ("span", "on", "median", "longest", "where")
    return {
        "paths": [path.to_json() | {"says": sentence(path)} for path in _paths(picture)],
        "spans": [dict(zip(names, row, strict=True)) for row in spreads(picture)],
    }


def sentence(path: CriticalPath) -> str:
    """Say in one sentence what a start waited for longest; of one that is not over, what it waits for."""
    aim = "All nodes' being ready" if path.world is None else "The first collective"
    step = path.longest
    if step is None:
        return f"{aim}: no time is known to have been spent on it."
    if not path.is_complete and all(each.span == UNACCOUNTED for each in path.steps):
        return f"{aim} did not come within {path.seconds:.2f} s, and nothing was recorded of what it waited for."
    if not path.is_complete:
        last = path.steps[-1]
        return f"{aim} did not come: at the end it had waited {last.seconds:.2f} s for {_what(last)}."
    much = f"{step.seconds:.2f} of {path.seconds:.2f} s ({_percent(step.share)})"
    return f"{aim} waited longest for {_what(step)}: {much}."


def spreads(picture: Picture) -> Iterator[tuple[str, str, float, float, str]]:
    """Yield for each span: its name, on how many tracks, the median and the longest seconds, and where that was.

    Spans that last still do not count. Those of nodes and of processes are told apart.
    """
    found: dict[tuple[str, str], list[tuple[float, int]]] = {}
    for number, track in enumerate(picture.tracks):
        kind = "nodes" if track.process_index is None else "processes"
        for span in track.spans:
            if span.end is not None:
                found.setdefault((span.name, kind), []).append((span.end - span.begin, number))
    usual = {name: place for place, name in enumerate(SPANS)}
    for (name, kind), times in sorted(found.items(), key=lambda item: (usual.get(item[0][0], len(usual)), item[0])):
        longest, number = max(times, key=lambda time: (time[0], -time[1]))
        on = f"{len(times)} {kind if len(times) > 1 else kind.removesuffix('es' if kind == 'processes' else 's')}"
        where = label_of(picture.tracks[number], picture.head)
        yield name, on, round(median(time for time, _ in times), 6), round(longest, 6), where


def _paths(picture: Picture) -> tuple[CriticalPath, ...]:
    """Return the starts that somebody waited for: a plain program may end before the nodes are ready."""
    return tuple(path for path in critical_paths(picture) if path.is_complete or not picture.is_plain)


def _heading(path: CriticalPath) -> str:
    one, many = ("node", "nodes") if path.world is None else ("process", "processes")
    who = f"{path.count} {one if path.count == 1 else many}"
    whose = "the nodes" if path.world is None else f"world {path.world}, generation {path.generation}"
    if path.is_complete:
        came = "all ready" if path.world is None else "first collective possible"
        return f"{whose}: {who}, {came} after {path.seconds:.2f} s"
    return f"{whose}: {who}, not started after {path.seconds:.2f} s"


def _what(step: Step) -> str:
    if step.span == UNACCOUNTED:
        return f"something that no span tells of, {_name(step).partition(', ')[2] or 'at the end'}, {step.where}"
    return f"{step.where} to {DOING.get(step.span, step.span)}"


def _name(step: Step) -> str:
    return step.span if step.before is None else f"{step.span}, before {step.before}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
