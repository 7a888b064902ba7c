import json
import subprocess
import sys
import threading

import pytest

from eray._core.tracks import Recorder, best_offset, checked, offset_of, shifted, steady


def ticking(*times):
    return iter(times).__next__


@pytest.mark.parametrize(
    ("calls", "rows"),
    [
        ([], []),
        ([("begin", "join", 1.0)], [["join", 1.0, None]]),
        ([("begin", "join", 1.0), ("end", "join", 2.5)], [["join", 1.0, 2.5]]),
        ([("end", "join", 2.0)], []),
        ([("begin", "join", 1.0), ("end", "join", 2.0), ("end", "join", 3.0)], [["join", 1.0, 2.0]]),
        ([("begin", "join", 1.0), ("end", "join", 0.5)], [["join", 1.0, 1.0]]),
        ([("begin", "raylet", 1.0), ("begin", "raylet", 4.0)], [["raylet", 1.0, 4.0], ["raylet", 4.0, None]]),
        (
            [("begin", "import jax", 1.0), ("begin", "join", 2.0), ("end", "import jax", 3.0), ("end", "join", 4.0)],
            [["import jax", 1.0, 3.0], ["join", 2.0, 4.0]],
        ),
        ([("add", "program", 1.0, 2.0), ("begin", "join", 2.0)], [["program", 1.0, 2.0], ["join", 2.0, None]]),
        ([("add", "program", 3.0, 2.0)], [["program", 3.0, 3.0]]),
    ],
)
def test_recorder_keeps_what_it_is_told(calls, rows):
    spans = Recorder(ticking())
    for method, *about in calls:
        getattr(spans, method)(*about)
    assert spans.rows() == rows


def test_recorder_reads_its_clock_where_no_time_is_told():
    spans = Recorder(ticking(1.0, 2.0, 3.0, 4.0))
    spans.begin("lock")
    spans.end("lock")
    with pytest.raises(RuntimeError), spans.during("attach"):
        raise RuntimeError
    assert spans.rows() == [["lock", 1.0, 2.0], ["attach", 3.0, 4.0]]


def test_rows_are_a_copy_that_json_holds():
    spans = Recorder(ticking(1.0, 2.0))
    spans.begin("lock")
    before = spans.rows()
    spans.end("lock")
    assert before == [["lock", 1.0, None]]
    assert checked(json.loads(json.dumps(spans.rows()))) == [["lock", 1.0, 2.0]]


def test_recorder_takes_spans_of_two_threads():
    spans = Recorder(lambda: 1.0)

    def record(name):
        for number in range(500):
            with spans.during(f"{name}{number}"):
                pass

    threads = [threading.Thread(target=record, args=(name,)) for name in ("a", "b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(spans.rows()) == sorted([f"{name}{number}", 1.0, 1.0] for name in "ab" for number in range(500))


def test_steady_clock_does_not_jump_with_the_machines():
    unix, monotonic = ticking(1000.0, 5000.0), ticking(10.0, 11.0, 12.5)
    clock = steady(unix, monotonic)
    assert unix() == 5000.0
    assert [clock(), clock()] == [1001.0, 1002.5]


@pytest.mark.parametrize(
    ("rows", "kept"),
    [
        (None, []),
        ("lock", []),
        ([["lock", 1, 2.0]], [["lock", 1.0, 2.0]]),
        ([["lock", 1.0, None]], [["lock", 1.0, None]]),
        ([["lock", 3.0, 2.0]], [["lock", 3.0, 3.0]]),
        ([["lock", 1.0], ["lock", "1", None], [7, 1.0, 2.0], {"a": 1}, None, ["gcs", 1.0, 2.0]], [["gcs", 1.0, 2.0]]),
        ([["lock", float("nan"), None], ["lock", 1.0, float("inf")], ["lock", True, None]], []),
    ],
)
def test_checked_drops_what_makes_no_sense(rows, kept):
    assert checked(rows) == kept


@pytest.mark.parametrize(
    ("sample", "offset_s"),
    [((10.0, 10.5, 11.0), 0.0), ((10.0, 12.5, 11.0), 2.0), ((10.0, 8.5, 11.0), -2.0), ((10.0, 10.0, 10.0), 0.0)],
)
def test_offset_is_their_clock_minus_the_middle_of_ours(sample, offset_s):
    assert offset_of(*sample) == offset_s


@pytest.mark.parametrize(
    ("samples", "offset_s"),
    [
        ([], None),
        ([(10.0, 15.5, 11.0)], 5.0),
        ([(10.0, 15.9, 11.0), (20.0, 25.05, 20.1), (30.0, 36.0, 32.0)], 5.0),
        ([(11.0, 99.0, 10.0)], None),  # our clock was set back meanwhile
        ([(11.0, 99.0, 10.0), (10.0, 15.5, 11.0)], 5.0),
    ],
)
def test_best_offset_is_of_the_shortest_round_trip(samples, offset_s):
    assert best_offset(samples) == (None if offset_s is None else pytest.approx(offset_s))


def test_shifted_brings_spans_to_our_clock():
    theirs = [["lock", 15.0, 16.0], ["raylet", 16.0, None]]
    assert shifted(theirs, 5.0) == [["lock", 10.0, 11.0], ["raylet", 11.0, None]]


def test_tracks_load_nothing_heavy():
    code = "import sys; before = set(sys.modules); import eray._core.tracks; print(*set(sys.modules) - before)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert "eray" in loaded
    assert loaded & {"pydantic", "asyncio", "ray", "jax", "numpy", "json", "logging"} == set()
