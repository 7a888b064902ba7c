"""What nodes and processes noted, brought on the head's clock."""

import pytest
from pydantic import ValidationError

from eray._core.picture import Track
from eray._io import clock
from eray._ray.noted import KEPT_GENERATIONS, KEPT_WORLDS, Noted, Notes, recorder

ROWS = [["join", 100.0, 101.5], ["check", 102.0, None], "nonsense"]


def test_notes_of_a_node_are_moved_by_how_far_its_clock_is_ahead() -> None:
    noted = Noted(("n1", "n2"))
    asked = noted.question()["asked"]
    noted.take(1, {"type": "clock", "asked": asked, "here": asked + 50.0})
    noted.take(1, {"type": "spans", "spans": ROWS})
    noted.take(0, {"type": "spans", "world": "w", "generation": 1, "process_index": 3, "spans": ROWS})
    other, process = (Track.model_validate(each) for each in noted.to_json())
    assert (process.node, process.node_rank, process.world, process.process_index) == ("n1", 0, "w", 3)
    assert [(span.name, span.begin, span.end) for span in process.spans] == [tuple(row) for row in ROWS[:2]]
    assert (other.node, other.node_rank, other.process_index) == ("n2", 1, None)
    assert abs(other.spans[0].begin - 50.0) < 1.0
    assert other.spans[1].end is None


def test_only_the_last_lives_of_a_world_are_kept() -> None:
    noted = Noted(("n1",))
    for generation in range(1, KEPT_GENERATIONS + 3):
        for world in ("a", "b"):
            place = {"world": world, "generation": generation, "process_index": 0}
            noted.take(0, {"type": "spans", **place, "spans": ROWS})
    kept = [(each["world"], each["generation"]) for each in noted.to_json()]
    assert kept == [(world, generation) for world in ("a", "b") for generation in range(3, KEPT_GENERATIONS + 3)]


def test_processes_without_a_supervisor_tell_the_coordinator_by_their_own_clock() -> None:
    notes = Notes()
    place = {"node": "10.0.0.1", "node_rank": None, "generation": 1, "process_index": 0}
    for number in range(KEPT_WORLDS + 2):
        notes.take({**place, "world": f"w{number:02}", "spans": ROWS}, now=102.5)
    tracks = [Track.model_validate(each) for each in notes.to_json()]
    assert [track.world for track in tracks] == [f"w{number:02}" for number in range(2, KEPT_WORLDS + 2)]
    assert tracks[0].spans[0].end - tracks[0].spans[0].begin == 1.5
    assert abs(clock.unix() - tracks[0].spans[1].begin - 0.5) < 1.0
    with pytest.raises(ValidationError):
        notes.take({**place, "world": "w", "generation": "first", "spans": ROWS}, now=102.5)


def test_first_span_is_the_process_until_now() -> None:
    ((name, begin, end),) = recorder("program").rows()
    assert name == "program"
    assert 0.0 < end - begin < 3600.0
