"""The parts of the page besides the grid: how it stands, problems, worlds, the start, what decided, what was said."""

from collections.abc import Sequence
from datetime import tzinfo

from eray._core.access import PURPOSES
from eray._core.picture import Picture
from eray._core.topology import World
from eray._show.failed_worlds import has_failed, joined_words
from eray._show.markup import Html, facts, join, table, tag, with_code
from eray._show.node_rows import NodeRow
from eray._show.ownership import state_of
from eray._show.starts import Start
from eray._show.troubles import Trouble
from eray._show.wording import counted, duration, folded, moment, offset
from eray._show.words import PLAIN

LEVELS = {"error": "Error", "warning": "Warning", "note": "Note"}
SIGNS = {"error": "✕", "warning": "!", "note": "i"}
MANY_PROCESSES = 64


def standing(picture: Picture, found: Sequence[Trouble]) -> tuple[str, str]:
    """Return how it stands in one word for colour (``error``, ``warning``, ``note``) and in words for people."""
    worst = found[0].level if found else "note"
    if picture.ending is not None:
        return "error" if picture.ending.has_failed else "note", picture.how_it_ended
    words = {"starting": "starting", "up": "up", "ended": "ended, how is not known"}[picture.phase]
    return worst, words if worst == "note" else f"{words}, with {'errors' if worst == 'error' else 'warnings'}"


def title(picture: Picture) -> str:
    """Return what the page is called."""
    name = f"job {picture.job}" if picture.job else f"cluster {picture.key}"
    return f"{name} on {picture.cluster}" if picture.cluster else name


def summary(picture: Picture, rows: Sequence[NodeRow], zone: tzinfo) -> Html:
    """Return the figures at the top: when, how long, how it ended, and how many of everything."""
    end = picture.taken_at if picture.ending is None else picture.ending.at
    told: list[tuple[str, object]] = [
        ("phase", picture.phase),
        ("began", _time(picture.began_at, zone)),
        ("ran" if picture.ending else "has run for", duration(max(end - picture.began_at, 0.0))),
    ]
    if picture.ending is not None:
        told.append(("ended", _time(picture.ending.at, zone)))
        told += [("exit code", picture.ending.code)] if picture.has_exit_code else []
        if picture.ending.cause:
            told.append(("cause", picture.ending.cause))
    ready = sum(row.view.state == "ready" for row in rows)
    at_end = " at the end" if picture.phase == "ended" else ""
    told.append((f"nodes ready{at_end}", f"{ready:,} of {len(rows):,}"))
    worlds = () if picture.topology is None else picture.topology.worlds
    if not any(has_failed(picture, world) for world in worlds):  # else that is how far the others had ended
        running = sum(process.state == "running" for world in worlds for process in world.processes)
        told.append((f"processes running{at_end}", f"{running:,} of {sum(world.process_count for world in worlds):,}"))
    cells = [cell for row in rows for cell in row.cells]
    if cells:
        kinds = sorted({cell.device.kind for cell in cells if cell.device and cell.device.kind})
        idle = sum(cell.holding == "idle" for cell in cells)
        of = f" {', '.join(kinds)}" if kinds else ""
        told.append((f"devices held{at_end}", f"{len(cells) - idle:,} of {len(cells):,}{of}"))
    told += [
        ("head", picture.head),
        ("started by", PURPOSES.get(picture.purpose, picture.purpose)),
        ("key", picture.key),
    ]
    told += [("Slurm's restart", picture.restart)] if picture.restart else []
    return facts([*told, ("seen", _time(picture.taken_at, zone))])


def problems(found: Sequence[Trouble]) -> Html:
    """Return what is wrong, the worst first, each with its remedy."""
    if not found:
        return tag("p", "Nothing is wrong.", class_="well")
    items = [
        tag(
            "li",
            tag(
                "p",
                tag("span", SIGNS[each.level], class_="sign", aria_hidden="true"),
                tag("b", LEVELS[each.level]),
                ": ",
                each.found,
            ),
            tag("p", tag("b", "Remedy"), ": ", with_code(each.remedy), class_="remedy") if each.remedy else "",
            class_=each.level,
        )
        for each in found
    ]
    return tag("ul", *items, class_="problems")


def worlds(picture: Picture, zone: tzinfo) -> Html:
    """Return each world with its phases and restarts, and the processes that matter."""
    found = () if picture.topology is None else picture.topology.worlds
    if picture.is_plain:
        return tag("p", f"No world: {PLAIN}.")
    if not found:
        return tag("p", f"No world{'' if picture.phase == 'ended' else ' yet'}: no process has joined.")
    return join(_world(world, picture, zone) for world in found)


def _world(world: World, picture: Picture, zone: tzinfo) -> Html:
    began_at, last = picture.began_at, "until now" if picture.phase != "ended" else "until the end"
    told: list[tuple[str, object]] = [
        ("phase at the end" if picture.phase == "ended" else "phase", world.phase.value),
        ("generation", world.generation),
        ("processes", joined_words(picture, world)),
        ("process 0 listens at", world.coordinator_address or "not published yet"),
    ]
    if world.failure is not None:
        told.append(("failure", world.failure))
    parts = [tag("h3", f"World {world.name}"), facts(told)]
    if world.timeline:
        nexts = [at for _, at in world.timeline[1:]]
        rows = [
            (
                phase.value,
                offset(at, began_at),
                duration(max(nexts[i] - at, 0)) if i < len(nexts) else last,
                _time(at, zone),
            )
            for i, (phase, at) in enumerate(world.timeline)
        ]
        parts.append(table(f"Phases of {world.name}", ("phase", "begins", "lasts", "time"), rows))
    if world.restarts:
        restarts = [
            (
                each.generation,
                each.cause,
                "unknown" if each.process_index is None else f"{each.process_index} of {each.process_count}",
                each.node or "unknown",
                "unknown" if each.code is None else each.code,
                "unknown" if each.failed_at is None else _time(each.failed_at, zone),
                _time(each.restarted_at, zone),
            )
            for each in world.restarts
        ]
        columns = ("generation", "cause", "process", "node", "code", "failed", "started again")
        parts.append(table(f"Restarts of {world.name}", columns, restarts))
    return join([*parts, _processes(world)])


def _processes(world: World) -> Html:
    """Return all processes of a small world; of a large one those that do not run, where these are few."""
    usual = "left" if any(process.state == "left" for process in world.processes) else "running"
    shown = [each for each in world.processes if len(world.processes) <= MANY_PROCESSES or each.state != usual]
    if not shown:
        return tag("p", f"All {len(world.processes):,} processes: {usual}. The grid has each.", class_="quiet")
    rows = [
        (
            each.process_index,
            each.node,
            tag("strong", each.state, "\u00a0✕", class_="bad") if state_of(each) == "dead" else each.state,
            each.pid,
            "unset" if each.visible is None else ", ".join(each.visible) or "none",
            "JAX decides" if each.local_device_ids is None else folded(each.local_device_ids) or "none",
            each.device_rule or "not decided",
        )
        for each in shown[:MANY_PROCESSES]
    ]
    columns = ("process", "node", "state", "pid", "visible devices", "of these, its own (by ordinal)", "rule")
    left_out = len(world.processes) - len(rows)
    caption = f"Processes of {world.name}" + (f"; {left_out:,} others are in the grid" if left_out else "")
    return table(caption, columns, rows)


def start_table(picture: Picture, start: Start) -> Html:
    """Return the chosen rows of a start in words: what each spent the longest time on."""
    rows = []
    for track in (picture.tracks[at] for at in start.chosen):
        spans = [(span, picture.taken_at if span.end is None else span.end) for span in track.spans]
        spans = [(span, end) for span, end in spans if start.begin <= span.begin <= end <= start.end]
        if not spans:
            continue
        longest, end = max(spans, key=lambda pair: pair[1] - pair[0].begin)
        who = "supervisor" if track.process_index is None else f"process {track.process_index}"
        still = " so far" if any(span.end is None for span, _ in spans) else ""
        rows.append(
            (
                f"{track.node}, {who}",
                offset(spans[0][0].begin, picture.began_at),
                offset(max(end for _, end in spans), picture.began_at) + still,
                f"{longest.name} ({duration(end - longest.begin)})",
            )
        )
    caption = f"{start.label.capitalize()}: {counted(len(rows), 'row')} of {len(start.rows):,}"
    return table(caption, ("who", "begins", "ends", "longest"), rows)


def pairs(caption: str, columns: tuple[str, str], values: dict[str, str]) -> Html:
    """Return names with their values as a table."""
    if not values:
        return tag("p", "Nothing is known.")
    return table(caption, columns, [(name, tag("code", value)) for name, value in sorted(values.items())])


def remarks(picture: Picture, zone: tzinfo) -> Html:
    """Return what the head said to people, oldest first."""
    if not picture.remarks:
        return tag("p", "Nothing was said.")
    said = [(offset(at, picture.began_at), _time(at, zone), words) for at, words in picture.remarks]
    return table("Remarks of the head", ("after", "time", "remark"), said)


def _time(at: float, zone: tzinfo) -> Html:
    return tag("time", moment(at, zone))
