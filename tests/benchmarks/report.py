"""One table a case: medians of wall and CPU seconds up to each event, and the ratios with their targets."""

from itertools import pairwise
from statistics import median
from typing import Any

from timed_run import Point, TimedRun
from ways import BY_HAND, EAGER, ON_DEMAND, SYMMETRIC

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
    "over": "the world is closed",
    "closed": "every process has left JAX and Ray",
    "exit": "every process has run its last line",
    "gone": "every process is gone",
    "ending": "the head ends the cluster",
    "cleared": "every node is cleared",
    "ended": "the command's end",
}
OURS = (EAGER, ON_DEMAND)
END = ("over", "closed", "exit", "gone", "ending", "cleared", "ended")
WALL_TARGETS = {BY_HAND: 0.7, SYMMETRIC: 0.45}
CPU_TARGETS = {BY_HAND: 0.9}
TEARDOWN_S = 2.0


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

    def cpu_s(self, way: str) -> float | None:
        """Return the CPU seconds until the first collective."""
        point = self._median(way, "collective")
        return None if point is None else point.cpu_s

    def _ratios(self) -> list[str]:
        lines = []
        for way in filter(OURS.__contains__, self._ways):
            ours = self._median(way, "collective")
            for other in filter(WALL_TARGETS.__contains__, self._ways):
                theirs = self._median(other, "collective")
                if ours is None or theirs is None:
                    continue
                words = [f"wall {ours.wall_s / theirs.wall_s:.2f} (target {WALL_TARGETS[other]})"]
                if ours.cpu_s and theirs.cpu_s:
                    target = f" (target {CPU_TARGETS[other]})" if other in CPU_TARGETS else ""
                    words.append(f"CPU {ours.cpu_s / theirs.cpu_s:.2f}{target}")
                lines.append(f"{way} / {other}: {', '.join(words)}")
        return lines

    def _teardown(self) -> list[str]:
        lines = []
        for way in filter(OURS.__contains__, self._ways):
            runs = [done.points for done in self._runs[way] if "ended" in done.points]
            if not runs:
                continue
            closing = median(points["ended"].wall_s - points["collective"].wall_s for points in runs)
            lines.append(f"{way}: {closing:.2f} s from the last collective to the end (target {TEARDOWN_S}), of that:")
            there = [event for event in ("collective", *END) if all(event in points for points in runs)]
            times = sorted((median(points[event].wall_s for points in runs), event) for event in there)
            for (before, _), (at, event) in pairwise(times):
                lines.append(f"  {at - before:6.2f} s until {MEANINGS[event]}")
        return lines


def _cell(point: Point | None) -> str:
    if point is None:
        return f"{'':>17}"
    cpu = "-" if point.cpu_s is None else f"{point.cpu_s:.2f}"
    return f"{point.wall_s:>10.2f}{cpu:>7}"
