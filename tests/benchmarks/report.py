"""One table a case: medians of wall and CPU seconds up to each event, and the ratios with their targets."""

from statistics import median
from typing import Any

from timed_run import Point, TimedRun
from ways import BY_HAND, OURS, SYMMETRIC

MEANINGS = {
    "supervisor": "the supervisor starts Ray",
    "rollcall": "roll-call of nodes complete",
    "gcs": "Ray's head answers (GCS)",
    "python": "Python is up in every process",
    "raylet": "Ray runs on every node",
    "coordinator": "the coordinator answers",
    "imported": "jax and ray imported",
    "attached": "attached to Ray",
    "forming": "the world is declared",
    "planned": "all have joined: planned",
    "published": "JAX's address published",
    "running": "JAX as planned everywhere",
    "connected": "JAX is up in every process",
    "collective": "FIRST COLLECTIVE in every process",
    "exit": "last process's exit",
    "ended": "the command's end",
}
WALL_TARGETS = {BY_HAND: 0.85, SYMMETRIC: 0.6}
CPU_TARGETS = {BY_HAND: 1.0}
TEARDOWN_S = 3.0


class Table:
    """The runs of one case."""

    def __init__(self, title: str, ways: tuple[str, ...]) -> None:
        self._title, self._ways = title, ways
        self._runs: dict[str, list[TimedRun]] = {way: [] for way in ways}
        self._failed = dict.fromkeys(ways, 0)

    def take(self, way: str, done: TimedRun, *, counts: bool) -> None:
        """Take one run; one that failed, or does not count, is only numbered."""
        if not done.succeeded:
            self._failed[way] += 1
        elif counts:
            self._runs[way].append(done)

    def show(self) -> None:
        """Print the table."""
        counts = ", ".join(f"{len(runs)} {way}" for way, runs in self._runs.items())
        print(f"\n{self._title}; medians of runs: {counts}; seconds since the start, wall and CPU")
        print(f"{'':34}" + "".join(f"{way:>17}" for way in self._ways))
        for event, meaning in MEANINGS.items():
            points = [self._median(way, event) for way in self._ways]
            if any(points):
                print(f"{meaning:34}" + "".join(_cell(point) for point in points))
        for line in (*self._ratios(), *self._teardown()):
            print(line)
        failed = {way: count for way, count in self._failed.items() if count}
        if failed:
            print(f"failed runs, left out: {failed}")
        print(end="", flush=True)

    def to_json(self) -> dict[str, Any]:
        """Return every run's events as [wall, CPU] seconds."""
        return {
            way: [{name: [point.wall_s, point.cpu_s] for name, point in done.points.items()} for done in runs]
            for way, runs in self._runs.items()
        }

    def _median(self, way: str, event: str) -> Point | None:
        points = [done.points[event] for done in self._runs[way] if event in done.points]
        if not points:
            return None
        cpus = [point.cpu_s for point in points if point.cpu_s is not None]
        return Point(median(point.wall_s for point in points), median(cpus) if cpus else None)

    def _ratios(self) -> list[str]:
        ours, lines = self._median(OURS, "collective"), []
        for way in self._ways:
            theirs = self._median(way, "collective")
            if way == OURS or ours is None or theirs is None:
                continue
            words = [f"wall {ours.wall_s / theirs.wall_s:.2f} (target {WALL_TARGETS[way]})"]
            if ours.cpu_s and theirs.cpu_s:
                target = f" (target {CPU_TARGETS[way]})" if way in CPU_TARGETS else ""
                words.append(f"CPU {ours.cpu_s / theirs.cpu_s:.2f}{target}")
            lines.append(f"eray / {way}: {', '.join(words)}")
        return lines

    def _teardown(self) -> list[str]:
        runs = [done.points for done in self._runs[OURS] if "ended" in done.points]
        if not runs:
            return []
        closing = median(points["ended"].wall_s - points["collective"].wall_s for points in runs)
        exits = [points["ended"].wall_s - points["exit"].wall_s for points in runs if "exit" in points]
        after = f", of that after the last process's exit {median(exits):.2f} s" if exits else ""
        return [
            f"eray's end: {closing:.2f} s from the last collective to the command's end{after} (target {TEARDOWN_S})"
        ]


def _cell(point: Point | None) -> str:
    if point is None:
        return f"{'':>17}"
    cpu = "-" if point.cpu_s is None else f"{point.cpu_s:.2f}"
    return f"{point.wall_s:>10.2f}{cpu:>7}"
