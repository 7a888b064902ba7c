"""What the nodes and processes of a cluster noted of their starts, on the head's clock."""

from collections.abc import Mapping
from typing import Any

from eray._core.tracks import Recorder, Row, best_offset, checked, shifted, steady
from eray._io import clock
from eray._io.link import Link
from eray._io.uptime import own_age_s

KEPT_GENERATIONS, KEPT_WORLDS = 4, 32
"""How many lives of a world, and worlds, are shown; the oldest goes first."""


def recorder(first: str) -> Recorder:
    """Return a recorder of this process, whose clock no correction of the machine's moves.

    Its first span is what the process did until now.
    """
    spans = Recorder(steady(clock.unix, clock.monotonic))
    spans.add(first, spans.now() - own_age_s(), spans.now())
    return spans


def tell_notes(link: Link | None, spans: Recorder, world: str, generation: int, process_index: int) -> None:
    """Tell this process's supervisor, where it has one, what its start was spent on so far."""
    if link is not None:
        place = {"world": world, "generation": generation, "process_index": process_index}
        link.send({"type": "spans", **place, "spans": spans.rows()})


class Lives:
    """The tracks of processes, by the life of their world. Of each world the last lives are kept."""

    def __init__(self) -> None:
        self._lives: dict[tuple[str, int], dict[int, dict[str, Any]]] = {}

    def put(self, track: dict[str, Any]) -> None:
        """Take the track of a process."""
        life = str(track["world"]), int(track["generation"])
        self._lives.setdefault(life, {})[int(track["process_index"])] = track
        for old in sorted(each for each in self._lives if each[0] == life[0])[:-KEPT_GENERATIONS]:
            del self._lives[old]
        while len({world for world, _ in self._lives}) > KEPT_WORLDS:
            del self._lives[next(iter(self._lives))]

    def to_json(self) -> list[dict[str, Any]]:
        """Return the tracks, by world, generation and index."""
        return [track for _, life in sorted(self._lives.items()) for _, track in sorted(life.items())]


class Notes:
    """What the processes that no supervisor serves noted, on the coordinator's clock."""

    def __init__(self) -> None:
        self._clock = steady(clock.unix, clock.monotonic)
        self._lives = Lives()

    def take(self, track: Mapping[str, Any], now: float) -> dict[str, Any]:
        """Keep a process's track; ``now`` is its clock's time as it sent it, a moment ago.

        Raises:
            ValidationError: it is none.
        """
        from eray._core.picture import Track

        rows = shifted(checked(track.get("spans")), float(now) - self._clock())
        known = Track.model_validate({**track, "spans": _spans(rows)})
        if known.world is not None and known.process_index is not None:
            self._lives.put(known.model_dump(mode="json"))
        return {}

    def to_json(self) -> list[dict[str, Any]]:
        """Return the tracks."""
        return self._lives.to_json()


class Noted:
    """What the nodes and their processes noted, and the readings of their clocks that make one of them."""

    def __init__(self, nodes: tuple[str, ...]) -> None:
        self._nodes = nodes
        self._clock = steady(clock.unix, clock.monotonic)
        self._readings: dict[int, list[tuple[float, float, float]]] = {}
        self._supervisors: dict[int, list[Row]] = {}
        self._lives = Lives()

    def question(self) -> dict[str, Any]:
        """Return what a node is asked for its clock with."""
        return {"type": "clock", "asked": self._clock()}

    def take(self, rank: int, message: Mapping[str, Any]) -> None:
        """Take a node's answer to ``question``, its own notes, or those of a process on it."""
        if message["type"] == "clock":
            self._readings.setdefault(rank, []).append((message["asked"], message["here"], self._clock()))
            return
        rows = checked(message.get("spans"))
        if message.get("world") is None:
            self._supervisors[rank] = rows
        else:
            about = {name: message[name] for name in ("world", "generation", "process_index")}
            self._lives.put(about | {"node_rank": rank, "spans": rows})

    def to_json(self) -> list[dict[str, Any]]:
        """Return the tracks of a picture: the supervisors' by rank, then the processes'."""
        supervisors = [{"node_rank": rank, "spans": rows} for rank, rows in sorted(self._supervisors.items())]
        return [self._track(each) for each in (*supervisors, *self._lives.to_json())]

    def _track(self, about: dict[str, Any]) -> dict[str, Any]:
        rank = about["node_rank"]
        ahead_s = best_offset(self._readings.get(rank, ())) or 0.0
        return about | {"node": self._nodes[rank], "spans": _spans(shifted(about["spans"], ahead_s))}


def _spans(rows: list[Row]) -> list[dict[str, Any]]:
    return [dict(zip(("name", "begin", "end"), row, strict=True)) for row in rows]
