"""Turn a picture into trace events, in the JSON that Perfetto and chrome://tracing open.

The format is Google's "Trace Event Format", its JSON object form: complete events (``ph`` X), instants (i) and metadata
(M), times in whole microseconds from the first thing that is known. Each node is a process of the trace, each track a
thread of it; the first process shows the critical path and the worlds.
"""

from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any

from eray._core.critical_path import CriticalPath, critical_paths
from eray._core.picture import Picture, Span, Track
from eray._core.topology import World

Event = dict[str, Any]
CLUSTER, FIRST_NODE = 1, 2
"""Ids of the trace's processes; 0 is the kernel's idle process to Perfetto."""


def trace(picture: Picture) -> dict[str, Any]:
    """Return the trace as an object for ``json.dumps``."""
    paths = critical_paths(picture)
    begins = [span.begin for track in picture.tracks for span in track.spans] + [path.begin for path in paths]
    events = list(_Writer(picture, min([picture.began_at, *begins])).events(paths))
    about = {"eray": picture.versions.get("eray", ""), "job": picture.job or "", "cluster": picture.cluster}
    return {"traceEvents": events, "displayTimeUnit": "ms", "otherData": about}


class _Writer:
    def __init__(self, picture: Picture, zero: float) -> None:
        self._picture, self._zero = picture, zero
        self._end = picture.taken_at if picture.ending is None else picture.ending.at
        self._threads = count(1)  # not two alike in the whole trace: viewers differ in what they make of that

    def events(self, paths: Sequence[CriticalPath]) -> Iterator[Event]:
        yield from _names("process", CLUSTER, 0, f"cluster {self._picture.key}", 0)
        for path in paths:
            yield from self._path(path)
        for world in self._picture.topology.worlds if self._picture.topology is not None else ():
            yield from self._world(world)
        yield from self._cluster_instants()
        nodes: dict[str, list[Track]] = {}
        for track in self._picture.tracks:
            nodes.setdefault(track.node, []).append(track)
        for number, tracks in enumerate(sorted(nodes.values(), key=_rank), start=FIRST_NODE):
            node = tracks[0].node
            name = f"{node} (head)" if node == self._picture.head else node
            yield from _names("process", number, 0, name, number)
            for track in sorted(tracks, key=_order):
                yield from self._track(number, track)

    def _path(self, path: CriticalPath) -> Iterator[Event]:
        thread = next(self._threads)
        whose = "the nodes" if path.world is None else f"{path.world}, generation {path.generation}"
        yield from _names("thread", CLUSTER, thread, f"critical path of {whose}", thread)
        for step in path.steps:
            about = {"where": step.where, "share": round(step.share, 4)}
            if step.before is not None:
                about["before"] = step.before
            name = f"{step.span} ({step.where})"
            yield self._complete(CLUSTER, thread, name, "critical path", step.begin, step.end, about)

    def _world(self, world: World) -> Iterator[Event]:
        thread = next(self._threads)
        yield from _names("thread", CLUSTER, thread, f"world {world.name}", thread)
        for phase, at in world.timeline:
            about: dict[str, Any] = {"generation": world.generation}
            if world.failure is not None and phase == world.phase:
                about |= {"cause": world.failure}
            yield self._instant(CLUSTER, thread, str(phase), "world", "t", at, about)
        for restart in world.restarts:
            about = restart.model_dump(mode="json", exclude_none=True, exclude={"failed_at", "restarted_at"})
            if restart.failed_at is not None:
                yield self._instant(
                    CLUSTER, thread, f"generation {restart.generation} failed", "failure", "g", restart.failed_at, about
                )
            name = f"generation {restart.generation + 1} starts"
            yield self._instant(CLUSTER, thread, name, "restart", "g", restart.restarted_at, about)

    def _cluster_instants(self) -> Iterator[Event]:
        picture = self._picture
        found: list[tuple[str, str, float, dict[str, Any]]] = []
        if picture.topology is not None and (notice := picture.topology.preemption) is not None:
            found.append(("preemption", "preemption", notice.at, {"reason": notice.reason}))
        for view in picture.nodes:
            if view.state == "lost" and view.since is not None:
                found.append((f"{view.name} lost", "failure", view.since, {"reason": view.reason}))
        if picture.ending is not None:
            about = {"code": picture.ending.code, "cause": picture.ending.cause or ""}
            found.append(("end", "failure" if picture.ending.has_failed else "end", picture.ending.at, about))
        if found:
            thread = next(self._threads)
            yield from _names("thread", CLUSTER, thread, "events", thread)
            for name, kind, at, about in found:
                yield self._instant(CLUSTER, thread, name, kind, "g", at, about)

    def _track(self, node: int, track: Track) -> Iterator[Event]:
        name, kind = "supervisor", "node"
        if track.process_index is not None:
            name, kind = f"process {track.process_index}", "process"
            if track.world != "main" or (track.generation or 1) > 1:
                name = f"{name} of {track.world}, generation {track.generation}"
        for number, spans in enumerate(self._lanes(track.spans)):
            thread = next(self._threads)
            yield from _names("thread", node, thread, f"{name}, beside" if number else name, thread)
            for span in spans:
                end, about = (span.end, {}) if span.end is not None else (self._end, {"unfinished": True})
                yield self._complete(node, thread, span.name, kind, span.begin, end, about)

    def _lanes(self, spans: Sequence[Span]) -> list[list[Span]]:
        """Part spans that overlap: viewers show only nested ones on one thread, and drop the others."""
        lanes: list[list[Span]] = [[]]
        ends = [0]
        for span in sorted(spans, key=lambda span: span.begin):
            begin, end = self._us(span.begin), self._us(self._end if span.end is None else span.end)
            free = next((number for number, until in enumerate(ends) if until <= begin), len(lanes))
            if free == len(lanes):
                lanes.append([])
                ends.append(0)
            lanes[free].append(span)
            ends[free] = max(begin, end)
        return lanes

    def _complete(
        self, pid: int, tid: int, name: str, kind: str, begin: float, end: float, args: dict[str, Any]
    ) -> Event:
        at = self._us(begin)
        about = {"ts": at, "dur": max(self._us(end) - at, 0), "pid": pid, "tid": tid, "args": args}
        return {"name": name, "cat": kind, "ph": "X", **about}

    def _instant(self, pid: int, tid: int, name: str, kind: str, scope: str, at: float, args: dict[str, Any]) -> Event:
        about = {"ts": max(self._us(at), 0), "pid": pid, "tid": tid, "s": scope, "args": args}
        return {"name": name, "cat": kind, "ph": "i", **about}

    def _us(self, at: float) -> int:
        return round((at - self._zero) * 1e6)


def _names(kind: str, pid: int, tid: int, name: str, index: int) -> Iterator[Event]:
    for what, args in ((f"{kind}_name", {"name": name}), (f"{kind}_sort_index", {"sort_index": index})):
        yield {"name": what, "ph": "M", "ts": 0, "pid": pid, "tid": tid, "args": args}


def _order(track: Track) -> tuple[bool, str, int, int]:
    return track.process_index is not None, track.world or "", track.generation or 0, track.process_index or 0


def _rank(tracks: Sequence[Track]) -> tuple[int, str]:
    ranks = [track.node_rank for track in tracks if track.node_rank is not None]
    return min(ranks, default=-1), tracks[0].node
