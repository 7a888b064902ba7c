"""Who is awaited is computed from a picture alone, in the coordinator's words."""

import json
from typing import Any

import pytest
from pictures import BEGAN, picture

from eray._core.phase import Phase
from eray._core.picture import Ending, NodeView, Picture, Span, Track
from eray._show.waits import Waits, waits_of

JOINING: dict[str, Any] = {"phase": "starting", "world_phase": Phase.FORMING}


def awaited(shown: Picture) -> list[tuple[str, list[tuple[int, str | None, str]]]]:
    worlds = waits_of(shown).worlds
    return [(wait.stage, [(m.process_index, m.node, m.state) for m in wait.missing]) for wait in worlds]


@pytest.mark.parametrize(
    ("phase", "states", "stage", "missing"),
    [
        (Phase.FORMING, ["joined", "joined", "awaited", "joined"], "join", [(2, "absent")]),
        (Phase.PUBLISHED, ["dialled", "joined", "initialised", "dialled"], "dial", [(1, "joined")]),
        (Phase.PUBLISHED, ["running", "dialled", "initialised", "running"], "initialise", [(1, "dialled")]),
        (
            Phase.PUBLISHED,
            ["running", "initialised", "running", "initialised"],
            "run",
            [(1, "initialised"), (3, "initialised")],
        ),
        (Phase.DRAINING, ["left", "left", "running", "left"], "leave", [(2, "running")]),
        (Phase.FAILED, ["dead", "left", "running", "failed"], "leave", [(2, "running")]),
        (Phase.FAILED, ["dead", "left", "running", "awaited"], "leave", [(2, "running")]),
    ],
)
def test_world_waits_for_those_who_hold_the_others_up(phase, states, stage, missing):
    shown = picture(world_phase=phase, states=states)
    nodes = [(index, f"node{index // 2 + 1:04}", state) for index, state in missing]
    assert awaited(shown) == [(stage, nodes)]


@pytest.mark.parametrize(
    ("phase", "states"),
    [
        (Phase.RUNNING, ["running"] * 4),
        (Phase.CLOSED, ["left"] * 4),
        (Phase.FAILED, ["dead", "left", "failed", "left"]),
    ],
)
def test_world_that_runs_or_is_over_waits_for_nobody(phase, states):
    assert waits_of(picture(world_phase=phase, states=states)) == Waits()


def test_planned_world_waits_for_process_0_to_publish():
    shown = picture(world_phase=Phase.PLANNED, states=["joined"] * 4)
    assert shown.topology is not None
    world = shown.topology.worlds[0].model_copy(update={"coordinator_address": None})
    shown = shown.model_copy(update={"topology": shown.topology.model_copy(update={"worlds": (world,)})})
    assert awaited(shown) == [("publish", [(0, "node0001", "joined")])]


def test_process_that_nobody_has_heard_of_is_known_by_its_index_only():
    assert awaited(picture(**JOINING, states=["joined"] * 3 + ["awaited"], tracks=())) == [
        ("join", [(3, None, "absent")])
    ]


def test_missing_process_tells_what_it_does_and_for_how_long():
    about = {"node": "node0002", "world": "main", "process_index": 3}
    spans = (Span(name="attach", begin=BEGAN, end=BEGAN + 5), Span(name="import jax", begin=BEGAN + 20))
    tracks = (Track(**about, generation=1, spans=spans), Track(**about, generation=2))
    (wait,) = waits_of(picture(**JOINING, states=["joined"] * 3 + ["awaited"], tracks=tracks)).worlds
    assert (wait.missing[0].doing, wait.missing[0].doing_for_s) == ("import jax", 40.0)
    assert (wait.world, wait.generation, wait.process_count) == ("main", 1, 4)
    assert (wait.since, wait.for_s) == (BEGAN + 6, 54.0)


@pytest.mark.parametrize(
    ("phase", "state", "since", "expected"),
    [
        ("starting", "awaited", None, [(BEGAN, 60.0)]),
        ("starting", "reported", BEGAN + 50, [(BEGAN + 50, 10.0)]),
        ("starting", "reported", BEGAN + 61, [(BEGAN + 61, 0.0)]),
        ("starting", "lost", BEGAN + 10, [(BEGAN + 10, 50.0)]),
        ("starting", "ready", BEGAN + 3, []),
        ("up", "lost", BEGAN + 10, []),
        ("up", "reported", BEGAN + 58, [(BEGAN + 58, 2.0)]),
        ("ended", "reported", BEGAN + 58, []),
    ],
)
def test_node_is_awaited_until_it_is_ready(phase, state, since, expected):
    nodes = (NodeView(node_rank=0, name="node0001", state=state, since=since),)
    assert [(wait.since, wait.for_s) for wait in waits_of(picture(phase=phase, nodes=nodes)).nodes] == expected


def test_nothing_is_awaited_before_there_is_a_coordinator_or_after_the_end():
    states = ["joined"] * 3 + ["awaited"]
    assert waits_of(picture(**JOINING, states=states, topology=None)) == Waits()
    ended = picture(
        phase="ended", ending=Ending(at=BEGAN, code=4), world_phase=Phase.FORMING, states=states, awaited=[1]
    )
    assert waits_of(ended) == Waits()


def test_waits_are_json():
    waits = waits_of(picture(**JOINING, states=["joined"] * 3 + ["awaited"], awaited=[1]))
    found = json.loads(json.dumps(waits.to_json()))
    assert found["nodes"] == [{"node_rank": 1, "node": "node0002", "state": "awaited", "since": BEGAN, "for_s": 60.0}]
    (world,) = found["worlds"]
    assert world["missing"][0]["process_index"] == 3
    assert (world["stage"], world["for_s"]) == ("join", 54.0)
