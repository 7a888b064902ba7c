"""What the nodes and processes of a cluster noted of their starts, on the head's clock."""

from collections.abc import Mapping
from typing import Any

from eray._core.tracks import Recorder, Row, best_offset, checked, shifted, steady
from eray._io import clock
from eray._io.uptime import own_age_s

KEPT_GENERATIONS = 4
"""How many lives of a world are shown; the oldest goes first."""


def recorder(first: str) -> Recorder:
    """Return a recorder of this process, whose clock no correction of the machine's moves.

    Its first span is what the process did until now.
    """
    spans = Recorder(steady(clock.unix, clock.monotonic))
    spans.add(first, spans.now() - own_age_s(), spans.now())
    return spans


class Noted:
    """Takes the notes of all, and the readings of their clocks that make one of them."""

    def __init__(self, nodes: tuple[str, ...]) -> None:
        self._nodes = nodes
        self._clock = steady(clock.unix, clock.monotonic)
        self._readings: dict[int, list[tuple[float, float, float]]] = {}
        self._supervisors: dict[int, list[Row]] = {}
        self._processes: dict[tuple[str, int], dict[int, tuple[int, list[Row]]]] = {}

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
            return
        life = str(message["world"]), int(message["generation"])
        self._processes.setdefault(life, {})[int(message["process_index"])] = (rank, rows)
        lives = [each for each in self._processes if each[0] == life[0]]
        for old in sorted(lives)[:-KEPT_GENERATIONS]:
            del self._processes[old]

    def to_json(self) -> list[dict[str, Any]]:
        """Return the tracks of a picture: the supervisors' by rank, then the processes' by index."""
        found = [self._track(rank, rows) for rank, rows in sorted(self._supervisors.items())]
        for (world, generation), processes in sorted(self._processes.items()):
            place = {"world": world, "generation": generation}
            for index, (rank, rows) in sorted(processes.items()):
                found.append(self._track(rank, rows) | place | {"process_index": index})
        return found

    def _track(self, rank: int, rows: list[Row]) -> dict[str, Any]:
        ahead_s = best_offset(self._readings.get(rank, ())) or 0.0
        spans = [dict(zip(("name", "begin", "end"), row, strict=True)) for row in shifted(rows, ahead_s)]
        return {"node": self._nodes[rank], "node_rank": rank, "spans": spans}
