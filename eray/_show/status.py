"""Show a cluster as ``eray status`` does: plain text for a pipe, styled lines for a terminal."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, tzinfo
from typing import TYPE_CHECKING, Any

from eray._core.access import PURPOSES
from eray._core.phase import Phase
from eray._core.picture import Picture
from eray._show.lines import Line, labelled, plain, styled
from eray._show.log_hint import failure_hint, world_hint
from eray._show.node_rows import node_rows
from eray._show.status_nodes import node_lines
from eray._show.status_worlds import world_lines
from eray._show.waits import PUBLISH, Waits, WorldWait, is_late, is_long, is_silent, raising, waits_of
from eray._show.wording import lasted, moment
from eray._show.words import hosts, one_line, the_first

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions

ENDED = (Phase.CLOSED, Phase.FAILED)
PHASES = {"starting": "yellow", "up": "green"}
SHORT = 40
"""Characters for the nodes in a hint; they stand above it too."""
CLUSTER, JOIN = "ERAY_CLUSTER_TIMEOUT_S", "ERAY_JOIN_TIMEOUT_S"


def status_text(picture: Picture, *, width: int | None = None, zone: tzinfo = UTC) -> str:
    """Return the cluster in lines of at most ``width`` characters, each fact in one line where that is None.

    Times of day are told in ``zone``.
    """
    return plain(status_lines(picture, width, zone), width)


@dataclass(frozen=True)
class StatusView:
    """The same for rich's console, as wide as it is; in ``height`` lines where rows of nodes can be left out."""

    picture: Picture
    zone: tzinfo = UTC
    height: int | None = None

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> Iterator[Any]:
        """Yield the styled lines."""
        lines = status_lines(self.picture, options.max_width, self.zone)
        yield from styled(lines, options.max_width, self.height)


def status_lines(picture: Picture, width: int | None, zone: tzinfo) -> list[Line]:
    """Return what is known of the cluster: head, nodes, worlds, and what can be done."""
    rows, waits = node_rows(picture), waits_of(picture)
    lines = list(head_lines(picture, zone))
    lines += node_lines(picture, rows, waits, width)
    lines += world_lines(picture, waits, zone)
    return lines + [Line(f"to do: {hint}", "bold", 7) for hint in _hints(picture, waits)][:1]


def head_lines(picture: Picture, zone: tzinfo) -> Iterator[Line]:
    """Yield which cluster it is and how it is, or how it ended and why."""
    where = f" on {one_line(picture.cluster)}" if picture.cluster else ""
    again = f" (restart {picture.restart})" if picture.restart else ""
    name = f"job {picture.key}{again}{where}" if picture.job is not None else f"cluster {picture.key}"
    text = f"{name}, {PURPOSES.get(picture.purpose, one_line(picture.purpose))}: "
    ending = picture.ending
    if ending is None:
        lasts = lasted(" for ", picture.taken_at - picture.began_at)
        style = f"bold {PHASES.get(picture.phase, '')}".strip()
        yield Line(f"{text}{picture.phase}{lasts}, head {picture.head}", style)
    else:
        style = "bold red" if ending.has_failed or picture.ends_failed else "bold"
        lasts = lasted(" after ", ending.at - picture.began_at)
        yield Line(f"{text}{picture.how_it_ended} at {moment(ending.at, zone)}{lasts}", style)
        if ending.cause is not None:
            yield labelled("cause", one_line(ending.cause), "red")
        if picture.queued is not None:
            yield labelled(
                "queue", f"{one_line(str(picture.queued))}: the job starts again (restart {picture.queued.restart})"
            )
    notice = picture.topology.preemption if picture.topology is not None else None
    if notice is not None:
        ago = lasted(", ", picture.seen_until - notice.at, " ago" if ending is None else " before the end")
        yield labelled("preemption", f"{one_line(notice.reason)}{ago}", "yellow")


def _hints(picture: Picture, waits: Waits) -> Iterator[str]:
    """Yield what can be done, the most urgent first."""
    if picture.ending is not None:
        if picture.ending.has_failed and (hint := failure_hint(picture)):
            yield hint
        return
    # Ray takes its time to start: that is worth a hint only where time gets short.
    late = [wait for wait in waits.nodes if is_long(wait)]
    late = [wait for wait in late if wait.state != "reported" or is_late(picture, CLUSTER, wait.for_s)]
    for state in ("awaited", "reported", "lost"):
        if found := [wait for wait in late if wait.state == state]:
            more = raising(picture, CLUSTER, max(wait.for_s for wait in found))
            yield f"look at the log of eray on {hosts([wait.node for wait in found], SHORT)}{more}"
    worlds = picture.topology.worlds if picture.topology is not None else ()
    if any(world.phase is Phase.FAILED for world in worlds):
        yield world_hint(picture)
    silent = {(world.name, world.generation) for world in worlds if is_silent(picture, world)}
    for wait in waits.worlds:
        if is_long(wait) and (wait.world, wait.generation) not in silent:
            yield _world_hint(picture, wait)
    goes_on = not worlds or any(world.phase not in ENDED for world in worlds)
    if goes_on and picture.topology is not None and picture.topology.preemption is not None:
        yield "save before the job ends: `conn.should_save(step)` is true at one step in all processes"


def _world_hint(picture: Picture, wait: WorldWait) -> str:
    missing = the_first(wait.missing)
    if wait.stage == "join":
        return f"see whether {missing} started and called eray.connect(){raising(picture, JOIN, wait.for_s)}"
    if wait.stage == "leave":
        more = raising(picture, "ERAY_DRAIN_TIMEOUT_S", wait.for_s, "; ")
        return f"look at the output of {missing}: the others wait on the way out{more}"
    subject = "its coordinator's address" if wait.stage == PUBLISH else "JAX's start"
    return f"look at the output of {missing}: {subject} is awaited{raising(picture, JOIN, wait.for_s, '; ')}"
