import json
from itertools import pairwise

import pytest
from pictures import BEGAN, picture, tracks

from eray._core.phase import Phase
from eray._core.picture import Ending, NodeView, Span, Track
from eray._core.topology import PreemptionNotice, Restart
from eray._show.trace import trace

NEEDS = {"X": {"name", "cat", "ts", "dur"}, "i": {"name", "cat", "ts", "s"}, "M": {"name", "args"}}
RESTART = Restart(
    generation=1,
    process_count=4,
    cause="process 1 on node0001 died",
    process_index=1,
    code=137,
    failed_at=BEGAN + 20.0,
    restarted_at=BEGAN + 21.5,
)


def lost(drawn):
    views = (*drawn.nodes[:1], NodeView(node_rank=1, name="node0002", state="lost", since=BEGAN + 30, reason="silent"))
    notice = PreemptionNotice(at=BEGAN + 40, reason="SIGUSR1 at node0002")
    topology = drawn.topology.model_copy(update={"preemption": notice})
    return drawn.model_copy(update={"nodes": views, "topology": topology})


def open_spans(drawn):
    spans = (Span(name="attach", begin=BEGAN - 1), Span(name="import jax", begin=BEGAN, end=BEGAN + 2))
    track = Track(node="node0003", world="main", generation=1, process_index=9, spans=spans)
    return drawn.model_copy(update={"tracks": (*drawn.tracks, track)})


PICTURES = {
    "plain": picture(),
    "restarted": picture(restarts=(RESTART,)),
    "lost": lost(picture(ending=Ending(at=BEGAN + 50, code=70, cause="node0002 is lost"), phase="ended")),
    "failed": picture(world_phase=Phase.FAILED, failure="process 3 died"),
    "open": open_spans(picture()),
    "empty": picture(tracks=(), topology=None),
    "up": picture(purpose="up"),
}


def events_of(drawn, ph=None):
    return [event for event in trace(drawn)["traceEvents"] if ph in (None, event["ph"])]


def names(drawn, kind):
    keys = ("pid",) if kind == "process" else ("pid", "tid")
    return {
        tuple(event[key] for key in keys): event["args"]["name"]
        for event in events_of(drawn, "M")
        if event["name"] == f"{kind}_name"
    }


@pytest.mark.parametrize("drawn", PICTURES.values(), ids=PICTURES)
def test_trace_is_json_whose_events_have_what_the_format_asks_for(drawn):
    found = trace(drawn)
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert isinstance(found["traceEvents"], list)
    assert found["displayTimeUnit"] in ("ms", "ns")
    for event in found["traceEvents"]:
        assert NEEDS[event["ph"]] <= set(event), event
        assert {type(event["pid"]), type(event["tid"])} == {int}
        assert isinstance(event["args"], dict)
        if event["ph"] != "M":
            assert isinstance(event["ts"], int)
            assert event["ts"] >= 0
        if event["ph"] == "X":
            assert isinstance(event["dur"], int)
            assert event["dur"] >= 0
        if event["ph"] == "i":
            assert event["s"] in ("g", "p", "t")


@pytest.mark.parametrize("drawn", PICTURES.values(), ids=PICTURES)
def test_every_event_is_on_a_thread_and_process_with_a_name(drawn):
    processes, threads = names(drawn, "process"), names(drawn, "thread")
    for event in events_of(drawn):
        assert (event["pid"],) in processes
        assert event["ph"] == "M" or (event["pid"], event["tid"]) in threads
    assert len({tid for _, tid in threads}) == len(threads)


@pytest.mark.parametrize("drawn", PICTURES.values(), ids=PICTURES)
def test_events_of_one_thread_do_not_overlap(drawn):
    lanes = {}
    for event in events_of(drawn, "X"):
        lanes.setdefault(event["tid"], []).append((event["ts"], event["ts"] + event["dur"]))
    for lane in lanes.values():
        assert all(before[1] <= after[0] for before, after in pairwise(sorted(lane)))


@pytest.mark.parametrize("drawn", [PICTURES["plain"], PICTURES["open"]])
def test_no_span_is_lost(drawn):
    shown = sorted(event["name"] for event in events_of(drawn, "X") if event["cat"] != "critical path")
    assert shown == sorted(span.name for track in drawn.tracks for span in track.spans)


def test_nodes_are_processes_and_tracks_are_threads():
    processes, threads = names(PICTURES["plain"], "process"), names(PICTURES["plain"], "thread")
    assert list(processes.values()) == ["cluster 7", "node0001 (head)", "node0002"]
    assert [name for (pid, _), name in threads.items() if pid == 3] == ["supervisor", "process 2", "process 3"]


def test_spans_that_overlap_get_a_thread_beside():
    threads = names(PICTURES["open"], "thread")
    assert {"process 9", "process 9, beside"} <= set(threads.values())


def test_critical_path_is_the_first_track():
    first = events_of(PICTURES["plain"], "X")[0]
    assert names(PICTURES["plain"], "thread")[first["pid"], first["tid"]] == "critical path of main, generation 1"
    path = [event for event in events_of(PICTURES["plain"], "X") if event["tid"] == first["tid"]]
    assert path[0]["ts"] == 0
    assert all(before["ts"] + before["dur"] == after["ts"] for before, after in pairwise(path))
    raylet = next(event for event in path if event["name"] == "raylet (node0002)")
    assert (raylet["ts"], raylet["dur"]) == (1_200_000, 2_300_000)


@pytest.mark.parametrize(
    ("kind", "name", "seconds", "args"),
    [
        ("restarted", "generation 1 failed", 20.0, {"cause": "process 1 on node0001 died", "code": 137}),
        ("restarted", "generation 2 starts", 21.5, {"cause": "process 1 on node0001 died"}),
        ("lost", "node0002 lost", 30.0, {"reason": "silent"}),
        ("lost", "preemption", 40.0, {"reason": "SIGUSR1 at node0002"}),
        ("lost", "end", 50.0, {"code": 70, "cause": "node0002 is lost"}),
        ("failed", "failed", 6.0, {"cause": "process 3 died"}),
        ("plain", "running", 6.0, {"generation": 1}),
    ],
)
def test_what_happened_is_an_instant(kind, name, seconds, args):
    found = [event for event in events_of(PICTURES[kind], "i") if event["name"] == name]
    assert [event["ts"] for event in found] == [round(seconds * 1e6)]
    assert args.items() <= found[0]["args"].items()


def test_span_that_lasts_goes_to_the_time_of_the_picture():
    event = next(e for e in events_of(PICTURES["open"], "X") if e["args"].get("unfinished"))
    assert (event["name"], event["ts"], event["dur"]) == ("attach", 0, 61_000_000)


def test_trace_of_many_processes_has_all_of_them():
    drawn = picture(node_count=1, tracks=tracks(40, 8))
    found = names(drawn, "thread").values()
    assert {f"process {index}" for index in range(320)} <= set(found)
