"""Say in lines how far each world of a cluster is, who is awaited, and why it was started again."""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import tzinfo

from eray._core.phase import Phase
from eray._core.picture import Picture
from eray._core.topology import Restart, World
from eray._show.failed_worlds import has_failed, joined_words
from eray._show.lines import Line, labelled
from eray._show.timeline import DOING
from eray._show.waits import OVER, Missing, Waits, WorldWait, is_silent
from eray._show.wording import lasted, moment
from eray._show.words import PLAIN, one_line, who

WHOLE, BRIEF, RESTARTS, DOINGS = 4, 6, 3, 3
"""How many worlds are shown with all lines, how many of the rest with one, restarts of a world, awaited processes."""
LAST = {
    Phase.FORMING: "not all had joined",
    Phase.PLANNED: "was starting JAX",
    Phase.PUBLISHED: "was starting JAX",
    Phase.RUNNING: "was running",
    Phase.DRAINING: "was ending",
}
"""What is said at the end of a world that was not over."""
STYLES = {Phase.RUNNING: "green", Phase.CLOSED: "dim", Phase.FAILED: "red"}


def world_lines(picture: Picture, waits: Waits, zone: tzinfo) -> Iterator[Line]:
    """Yield the worlds: those that live or failed with all that is known, the last of the others in a line each."""
    if picture.is_plain:
        yield Line(PLAIN)
        return
    worlds = () if picture.topology is None else picture.topology.worlds
    whole = [world for world in worlds if world.phase is not Phase.CLOSED][-WHOLE:] or list(worlds[-1:])
    rest = [world for world in worlds if world not in whole]
    if len(rest) > BRIEF:
        yield Line(f"{len(rest) - BRIEF:,} earlier worlds, as `eray status --json` shows them", "dim", minor=True)
    for world in rest[-BRIEF:]:
        yield Line(f"{_title(world)}: {_phase(picture, world)}, {_count(picture, world)}", _style(picture, world))
    for world in whole:
        yield from _world(picture, world, waits, zone)


def _title(world: World) -> str:
    return f"world {one_line(world.name)}, generation {world.generation}"


def _world(picture: Picture, world: World, waits: Waits, zone: tzinfo) -> Iterator[Line]:
    since = picture.seen_until - world.timeline[-1][1] if world.timeline else 0.0
    if picture.ending is None or world.phase in LAST:
        lasts = lasted(" for ", since)
    else:
        lasts = lasted(" ", since, " before the end")
    silent = is_silent(picture, world)
    said = "not formed" if silent and picture.ending is not None else f"{_phase(picture, world)}{lasts}"
    yield Line(f"{_title(world)}: {said}", f"bold {_style(picture, world)}")
    if silent:
        yield labelled("processes", silence(picture, world))
        return
    yield labelled("processes", _count(picture, world))
    if world.coordinator_address is not None:
        yield labelled("coordinator", world.coordinator_address)
    for wait in waits.worlds:
        if (wait.world, wait.generation) == (world.name, world.generation):
            yield labelled("awaited", f"{who(wait.missing)} to {wait.stage}{lasted(', for ', wait.for_s)}", "yellow")
            yield from _doing(wait)
    if world.failure is not None:
        yield labelled("failure", one_line(world.failure), "red")
    yield from _restarts(world.restarts, zone)


def silence(picture: Picture, world: World) -> str:
    """Say that no process of a world has called ``eray.connect()``."""
    has, yet = ("had", "") if picture.phase == "ended" else ("has", " yet")
    whose = f"its process {has} not" if world.process_count == 1 else f"none of {world.process_count:,} {has}"
    return f"{whose} called eray.connect(){yet}: a plain program need not"


def _phase(picture: Picture, world: World) -> str:
    return str(world.phase) if picture.phase != "ended" else LAST.get(world.phase, str(world.phase))


def _style(picture: Picture, world: World) -> str:
    return "dim" if picture.phase == "ended" and world.phase in LAST else STYLES.get(world.phase, "yellow")


def _count(picture: Picture, world: World) -> str:
    if has_failed(picture, world):
        return joined_words(picture, world)
    states = Counter(process.state for process in world.processes)
    over = [f"{states[state]:,} {state}" for state in ("left", "failed", "dead") if states[state]]
    of = f"of {world.process_count:,}"
    run = "running" if picture.phase != "ended" else "were running at the end"
    running = [] if world.phase is Phase.CLOSED else [f"{states['running']:,} {of} {run}"]
    return ", ".join([f"{len(world.processes):,} {of} joined", *running, *over])


def _doing(wait: WorldWait) -> Iterator[Line]:
    """Yield what those that hold the others up are in the middle of, one line for each thing."""
    found: dict[str, list[Missing]] = {}
    for each in wait.missing:
        if each.doing is not None and each.state not in OVER:
            found.setdefault(each.doing, []).append(each)
    for doing, group in sorted(found.items(), key=lambda item: -len(item[1]))[:DOINGS]:
        longest = max(each.doing_for_s or 0.0 for each in group)
        what = DOING.get(doing, one_line(doing))
        yield labelled("", f"{who(group)}: still to {what}{lasted(', for ', longest)}")


def _restarts(restarts: Sequence[Restart], zone: tzinfo) -> Iterator[Line]:
    if not restarts:
        return
    shown = restarts[-RESTARTS:]
    times = "once" if len(restarts) == 1 else f"{len(restarts)} times"
    yield labelled("restarted", times + (f"; the last {len(shown)}:" if len(shown) < len(restarts) else ""))
    for restart in shown:
        failed_at = restart.restarted_at if restart.failed_at is None else restart.failed_at
        after = lasted(", back after ", restart.restarted_at - failed_at)
        code = "" if restart.code is None else f" (code {restart.code})"
        text = f"{moment(failed_at, zone)}, generation {restart.generation}{after}: {one_line(restart.cause)}{code}"
        yield labelled("", text, "yellow")
