import random
import time

import pytest
from pictures import BEGAN, node_name, picture, tracks

from eray._core.critical_path import UNACCOUNTED, critical_paths
from eray._core.phase import Phase
from eray._core.picture import SPANS, Ending, NodeView, Span, Track
from eray._core.start_order import HEAD, NODE, PROCESS, Whose
from eray._core.topology import Restart
from eray._show.timeline import DOING, sentence, spreads, timeline_text

HEAD_SPANS = {"supervisor": (0, 1), "lock": (1, 1.2), "gcs": (1.2, 2), "raylet": (2, 4), "coordinator": (4, 5)}
NODE_SPANS = {"supervisor": (0, 1), "lock": (1, 1.2), "roll-call": (1.2, 1.5), "raylet": (2, 4.5)}
PROCESS_SPANS = {
    "program": (1.5, 2),
    "environment": (2, 2.1),
    "import jax": (2.1, 4),
    "import ray": (2.1, 3),
    "ready": (3, 5.1),
    "attach": (5.1, 5.5),
    "join": (5.5, 5.6),
    "initialise": (5.6, 6),
    "check": (6, 7),
    "all running": (7, 7.1),
}


def track(rank, spans, process_index=None, generation=1, world="main"):
    about = {} if process_index is None else {"world": world, "generation": generation, "process_index": process_index}
    rows = tuple(
        Span(name=name, begin=BEGAN + begin, end=None if end is None else BEGAN + end)
        for name, (begin, end) in spans.items()
    )
    return Track(node=node_name(rank), node_rank=rank, spans=rows, **about)


def changed(spans, **changes):
    names = {name.replace("_", " "): times for name, times in changes.items()}
    return {name: times for name, times in {**spans, **names}.items() if times is not None}


def start(*, head=(), node=(), first=(), second=(), **more):
    """Two nodes with a process each."""
    found = (
        track(0, changed(HEAD_SPANS, **dict(head))),
        track(1, changed(NODE_SPANS, **dict(node))),
        track(0, changed(PROCESS_SPANS, address=None, **dict(first)), 0),
        track(1, changed(PROCESS_SPANS, **dict(second)), 1),
    )
    return picture(node_count=2, per_node=1, tracks=found, **more)


def chain(path):
    return [
        (step.where.replace(" (head)", ""), step.span, round(step.begin - BEGAN, 3), round(step.end - BEGAN, 3))
        for step in path.steps
    ]


def assert_tiles(path):
    ends = [path.begin, *(step.end for step in path.steps)]
    assert [step.begin for step in path.steps] == ends[:-1]
    assert ends[-1] == path.end
    assert all(step.seconds > 0 for step in path.steps)
    assert sum(step.share for step in path.steps) == pytest.approx(1.0 if path.steps else 0.0)


def only(picture):
    (path,) = critical_paths(picture)
    assert_tiles(path)
    return path


def test_sample_waits_for_the_last_nodes_raylet_and_the_last_process():
    path = only(picture())
    assert (path.world, path.generation, path.count, path.is_complete) == ("main", 1, 4, True)
    assert (path.begin, path.end) == (BEGAN, BEGAN + 6.0)
    assert chain(path)[1:7] == [
        ("node0001", "lock", 0.1, 0.2),
        ("node0001", "gcs", 0.2, 1.2),
        ("node0002", "raylet", 1.2, 3.5),
        ("process 3 on node0002", UNACCOUNTED, 3.5, 4.0),
        ("process 3 on node0002", "attach", 4.0, 4.8),
        ("process 3 on node0002", "join", 4.8, 5.4),
    ]
    assert path.steps[4].before == "attach"
    assert path.longest.span == "raylet"


@pytest.mark.parametrize(
    ("changes", "on_the_path"),
    [
        ({}, ("process 0 on node0001", "check", 6.0, 7.0)),
        ({}, ("node0001", "coordinator", 4.0, 5.0)),
        ({}, ("process 0 on node0001", "ready", 5.0, 5.1)),
        # a node whose raylet is slow holds all back: they are in join until its process joins
        (
            {
                "node": {"raylet": (2, 6)},
                "first": {"join": (5.5, 6.9)},
                "second": {"ready": (3, 6.1), "attach": (6.1, 6.5), "join": (6.5, 6.9)},
            },
            ("node0002", "raylet", 2.0, 6.0),
        ),
        # an import of JAX that takes longer than all of Ray
        (
            {"first": {"join": (5.5, 9.2)}, "second": {"import_jax": (2.1, 9), "join": (9, 9.2)}},
            ("process 1 on node0002", "import jax", 2.1, 9.0),
        ),
        # a program that does much before connect()
        (
            {
                "first": {"join": (5.5, 9.2)},
                "second": {
                    "program": (1.5, 8),
                    "environment": (8, 8.1),
                    "import_jax": (8.1, 9),
                    "import_ray": (8.1, 8.5),
                    "ready": (8.5, 8.6),
                    "attach": (8.6, 8.8),
                    "join": (9, 9.2),
                },
            },
            ("process 1 on node0002", "program", 1.5, 8.0),
        ),
        # process 0's address comes late
        (
            {
                "first": {"port": (5.6, 5.6), "publish": (5.6, 5.9)},
                "second": {"address": (5.6, 5.92), "dial": (5.92, 5.95), "initialise": (5.95, 6)},
            },
            ("process 0 on node0001", "publish", 5.6, 5.9),
        ),
        # a node that finds the head late
        (
            {
                "node": {"supervisor": (0, 3), "lock": (3, 3.1), "roll-call": (3.1, 3.3), "raylet": (3.3, 5.6)},
                "second": {"ready": (3.5, 5.7), "attach": (5.7, 6), "join": (6, 6.1)},
                "first": {"join": (5.5, 6.1)},
            },
            ("node0002", "supervisor", 0.0, 3.0),
        ),
    ],
)
def test_path_holds_what_was_waited_for(changes, on_the_path):
    later = {"initialise": (9.2, 9.3), "check": (9.3, 10), "all_running": (10, 10.1)}
    if any(end > 6 for spans in changes.values() for _, end in spans.values()):
        changes = changes | {name: changes[name] | later for name in ("first", "second")}
    assert on_the_path in chain(only(start(**changes)))


def test_process_that_starts_jax_slowly_is_named_not_those_that_wait_for_it():
    slow = {"check": (11, 12), "initialise": (5.6, 11), "all_running": (12, 12.1)}
    path = only(start(first={"check": (6, 12), "all_running": (12, 12.1)}, second=slow))
    assert [row[1:] for row in chain(path)][-2:] == [("check", 11.0, 12.0), ("all running", 12.0, 12.1)]
    assert ("process 1 on node0002", "initialise", 5.6, 11.0) in chain(path)


def test_clocks_that_differ_a_little_do_not_hide_a_wait():
    path = only(start(head={"coordinator": (4, 5.15)}))  # ends after the last process heard of it
    assert ("node0001", "coordinator", 4.0, 5.1) in chain(path)


def test_what_ends_long_after_the_wait_was_not_waited_for():
    path = only(start(head={"coordinator": (4, 5.15), "roll-call": (1.2, 6.9)}))
    assert "roll-call" not in [step.span for step in path.steps]


def test_tasks_of_a_step_start_the_supervisors():
    spans = {"program": (-2, -1), "environment": (-1, -0.9)}
    path = only(start(first=spans, second=spans, head={"supervisor": (-0.9, 1)}))
    assert chain(path)[:3] == [
        ("process 0 on node0001", "program", -2.0, -1.0),
        ("process 0 on node0001", "environment", -1.0, -0.9),
        ("node0001", "supervisor", -0.9, 1.0),
    ]
    assert path.begin == BEGAN - 2.0


@pytest.mark.parametrize("seed", range(40))
def test_paths_tile_whatever_is_missing_or_lasts(seed):
    chance = random.Random(seed)
    found = []
    for each in tracks(3, 2):
        kept = [span for span in each.spans if chance.random() < 0.7]
        lasting = [span.model_copy(update={"end": None}) if chance.random() < 0.1 else span for span in kept]
        moved = [
            span.model_copy(update={"begin": span.begin - chance.random()}) if chance.random() < 0.2 else span
            for span in lasting
        ]
        found.append(each.model_copy(update={"spans": tuple(moved)}))
    phase = chance.choice([Phase.RUNNING, Phase.FORMING, Phase.FAILED])
    drawn = picture(node_count=3, tracks=tuple(found), world_phase=phase, purpose=chance.choice(["run", "up"]))
    for path in critical_paths(drawn):
        assert_tiles(path)
    assert "first collective" in timeline_text(drawn).lower()


def test_process_with_every_span_of_everything_ends():
    found = (track(0, dict.fromkeys(NODE, (1, 2))), track(0, dict.fromkeys(PROCESS, (1, 2)), 0))
    assert_tiles(only(picture(node_count=1, per_node=1, tracks=found)))


def test_start_that_is_not_over_names_what_lasts():
    waiting = {"join": (5.5, None), "initialise": None, "check": None, "all_running": None}
    late = {"import_jax": (2.1, None), "join": None, "initialise": None, "check": None, "all_running": None}
    path = only(start(first=waiting, second=late, world_phase=Phase.FORMING))
    assert not path.is_complete
    assert path.end == BEGAN + 60.0
    assert chain(path)[-1] == ("process 1 on node0002", "import jax", 2.1, 60.0)
    assert "had waited 57.90 s for process 1 on node0002 to import JAX" in sentence(path)


def test_process_of_which_nothing_is_heard_is_what_is_waited_for():
    found = (track(0, HEAD_SPANS), track(0, {"attach": (5.1, 5.5), "join": (5.5, None)}, 0))
    forming = {"node_count": 1, "per_node": 2, "tracks": found, "world_phase": Phase.FORMING}
    step = only(picture(states=["joined", "awaited"], **forming)).steps[-1]
    assert (step.where, step.span, step.before, step.end) == ("process 1", UNACCOUNTED, "environment", BEGAN + 60.0)
    told_late = only(picture(states=["joined", "joined"], **forming)).steps[-1]
    assert (told_late.where, told_late.span) == ("process 0 on node0001", "join")


def test_start_that_failed_ends_with_the_failure():
    waiting = {"join": (5.5, None), "initialise": None, "check": None, "all_running": None}
    path = only(start(first=waiting, second=waiting, world_phase=Phase.FAILED, failure="process 1 died"))
    assert (path.is_complete, path.end) == (False, BEGAN + 6.0)


def test_nodes_alone_are_a_start_of_their_own():
    found = (track(0, HEAD_SPANS), track(1, changed(NODE_SPANS, ready=(4.5, 5.2))))
    path = only(picture(tracks=found, purpose="up", topology=None))
    assert (path.world, path.generation, path.count, path.is_complete) == (None, None, 2, True)
    assert chain(path)[-3:] == [
        ("node0001", "raylet", 2.0, 4.0),
        ("node0001", "coordinator", 4.0, 5.0),
        ("node0002", "ready", 5.0, 5.2),
    ]
    assert "All nodes' being ready waited longest for node0001 (head) to start its raylet" in sentence(path)


def test_node_that_came_again_does_not_make_the_start_longer():
    again = {"raylet": (300, 302), "ready": (302, 303)}
    found = (track(0, HEAD_SPANS), track(1, changed(NODE_SPANS, ready=(4.5, 5.2))), track(1, again))
    path = only(picture(tracks=found, purpose="up", topology=None))
    assert (path.is_complete, path.count, path.end) == (True, 2, BEGAN + 5.2)
    assert chain(path)[-1] == ("node0002", "ready", 5.0, 5.2)


def test_nodes_that_do_not_come_are_what_is_waited_for():
    found = (track(0, {"lock": (0, 0.2), "roll-call": (0.2, None), "gcs": (0.2, 1), "raylet": (1, 3)}),)
    path = only(picture(tracks=found, purpose="up", topology=None, phase="starting", awaited=(1,)))
    assert not path.is_complete
    assert path.end == BEGAN + 60.0


def test_picture_without_tracks_is_all_unaccounted():
    path = only(picture(tracks=(), ending=Ending(at=BEGAN + 9.0, code=70), phase="ended"))
    assert [(step.span, step.seconds) for step in path.steps] == [(UNACCOUNTED, pytest.approx(path.seconds))]


def test_start_of_which_nothing_was_recorded_counts_its_nodes_and_says_so():
    nodes = [NodeView(node_rank=0, name="node0001", state="reported", since=BEGAN)]
    path = only(picture(tracks=(), topology=None, nodes=nodes, ending=Ending(at=BEGAN + 9.0, code=70), phase="ended"))
    assert (path.count, path.is_complete) == (1, False)
    words = "did not come within 9.00 s, and nothing was recorded of what it waited for."
    assert sentence(path) == f"All nodes' being ready {words}"


def test_world_on_a_cluster_that_is_up_begins_with_its_processes():
    spans = {name: (begin + 30, end + 30) for name, (begin, end) in PROCESS_SPANS.items()}
    found = (track(0, HEAD_SPANS), track(0, spans, 0))
    nodes, world = critical_paths(picture(node_count=1, per_node=1, tracks=found, purpose="up"))
    assert (nodes.world, world.world) == (None, "main")
    assert (world.begin, world.end) == (BEGAN + 31.5, BEGAN + 37.1)
    assert_tiles(world)


def restarted(stops=(), **gap):
    again = {name: (begin + 20, end + 20) for name, (begin, end) in PROCESS_SPANS.items() if name != "program"}
    found = (
        track(0, HEAD_SPANS),
        track(1, NODE_SPANS),
        *(track(rank, {"stop": times}) for rank, times in enumerate(stops)),
        track(0, PROCESS_SPANS, 0),
        track(1, PROCESS_SPANS, 1),
        track(0, again, 0, generation=2),
        track(1, again, 1, generation=2),
    )
    about = {"process_count": 2, "cause": "process 1 died", **gap}
    restart = Restart(generation=1, failed_at=BEGAN + 20, restarted_at=BEGAN + 21.5, **about)
    return picture(per_node=1, tracks=found, restarts=(restart,))


def test_restart_has_a_path_of_its_own_from_the_failure_on():
    first, second = critical_paths(restarted())
    assert_tiles(first)
    assert_tiles(second)
    assert (first.generation, first.is_complete, first.end) == (1, True, BEGAN + 7.1)
    assert (second.generation, second.is_complete) == (2, True)
    assert (second.begin, second.end) == (BEGAN + 20, BEGAN + 27.1)
    assert chain(second)[:2] == [
        ("node0001", "stop", 20.0, 21.5),
        ("process 0 on node0001", UNACCOUNTED, 21.5, 22.0),
    ]


def test_restart_waits_for_the_node_that_stops_last():
    _, path = critical_paths(restarted(stops=[(20.1, 20.5), (20.1, 21.9)]))
    assert_tiles(path)
    assert ("node0002", "stop", 20.1, 21.9) in chain(path)


def test_generation_that_never_ran_ends_with_its_failure():
    stuck = {"attach": (5.1, 5.5), "join": (5.5, None)}
    again = {name: (begin + 20, end + 20) for name, (begin, end) in PROCESS_SPANS.items()}
    found = (track(0, HEAD_SPANS), track(0, stuck, 0), track(0, again, 0, generation=2))
    restart = Restart(
        generation=1, process_count=2, cause="died", failed_at=BEGAN + 8, restarted_at=BEGAN + 9, process_index=1
    )
    first, second = critical_paths(picture(node_count=1, per_node=2, tracks=found, restarts=(restart,)))
    assert_tiles(first)
    assert (second.generation, second.is_complete) == (2, True)
    assert (first.is_complete, first.end) == (False, BEGAN + 8)


def test_path_of_eight_thousand_processes_costs_little():
    drawn = picture(node_count=1, tracks=tracks(1000, 8))
    began = time.process_time()
    path = only(drawn)
    assert time.process_time() - began < 1.0
    assert ("node1000", "raylet", 1.2, 3.5) in chain(path)


def test_order_knows_every_span_and_names_no_other():
    assert {*NODE, *PROCESS} == set(SPANS) == set(DOING)
    tables = {Whose.NODE: NODE, Whose.HEAD: HEAD, Whose.EVERY_NODE: NODE, Whose.OTHER_NODES: NODE}
    for own in (NODE, HEAD, PROCESS):
        for order in own.values():
            for need in order.after + order.until:
                table = own if need.whose is Whose.OWN else tables.get(need.whose, PROCESS)
                assert need.span in table


def test_spreads_tell_the_usual_and_the_longest():
    rows = {(name, on): (half, most, where) for name, on, half, most, where in spreads(picture())}
    assert rows["import jax", "4 processes"] == (2.9, 3.7, "process 3 on node0002")
    assert rows["gcs", "1 node"] == (1.0, 1.0, "node0001 (head)")
    assert [name for name, *_ in spreads(picture())] == [
        name for name in SPANS if name in {span.name for each in tracks(2, 2) for span in each.spans}
    ]
