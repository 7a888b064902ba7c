import io
import json
import os
import re
import stat

import pytest
from pictures import BEGAN, picture, tracks

from eray._cli.main import main
from eray._core.phase import Phase
from eray._core.picture import Ending, NodeView, Span, Track
from eray._io.output import write_output


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "picture.json"
    path.write_text(json.dumps(picture().to_json()))
    return path


def test_timeline_prints_steps_total_and_one_sentence(saved, capsys):
    assert main(["timeline", "--from", str(saved)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "world main, generation 1: 4 processes, first collective possible after 6.00 s"
    rows = [line.split() for line in lines]
    assert ["raylet", "node0002", "2.30", "38", "%"] in rows
    assert ["total", "6.00", "100", "%"] in rows
    assert "The first collective waited longest for node0002 to start its raylet: 2.30 of 6.00 s (38 %)." in lines


def test_process_that_does_not_come_is_in_its_program(tmp_path, capsys):
    about = {"node_count": 1, "states": ["joined", "awaited"], "world_phase": Phase.FORMING}
    path = tmp_path / "picture.json"
    path.write_text(json.dumps(picture(tracks=tracks(1, 2)[:2], **about).to_json()))
    assert main(["timeline", "--from", str(path)]) == 0
    steps = [re.split(r"  +", line)[:2] for line in capsys.readouterr().out.splitlines()]
    assert ["its program, before eray.connect()", "process 1"] in steps


@pytest.mark.parametrize("kept", [0, 1], ids=["before Ray was up", "with Ray up"])
def test_timeline_of_a_plain_program_says_so_and_waits_for_nobody(kept, tmp_path, capsys):
    nodes = (NodeView(node_rank=0, name="node0001", state="ready" if kept else "reported", since=BEGAN + 3),)
    more = {"node_count": 1, "per_node": 1, "states": ["awaited"], "world_phase": Phase.FORMING, "nodes": nodes}
    shown = picture(phase="ended", ending=Ending(at=BEGAN + 9, code=0), tracks=tracks(1, 0) if kept else (), **more)
    path = tmp_path / "picture.json"
    path.write_text(json.dumps(shown.to_json()))
    assert main(["timeline", "--from", str(path)]) == 0
    first, *more = capsys.readouterr().out.splitlines()
    assert first == "No process called eray.connect(): a plain program need not."
    assert more[1:2] == (["the nodes: 1 node, all ready after 3.00 s"] if kept else [])
    assert main(["timeline", "--json", "--from", str(path)]) == 0
    assert len(json.loads(capsys.readouterr().out)["paths"]) == kept


ON_ITS_WAY = (
    Track(
        node="node0001",
        node_rank=0,
        spans=[
            Span(name="lock", begin=BEGAN, end=BEGAN + 1),
            Span(name="gcs", begin=BEGAN + 1, end=BEGAN + 2),
            Span(name="raylet", begin=BEGAN + 2, end=None),
        ],
    ),
)
NODES_START = {
    "nodes": (NodeView(node_rank=0, name="node0001", state="reported", since=BEGAN + 1),),
    "node_count": 1,
    "topology": None,
    "taken_at": BEGAN + 5,
}


def test_timeline_during_a_start_tells_what_goes_on_and_since_when(tmp_path, capsys):
    path = tmp_path / "picture.json"
    path.write_text(json.dumps(picture(phase="starting", tracks=ON_ITS_WAY, **NODES_START).to_json()))
    assert main(["timeline", "--from", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "the nodes: 1 node, 1 reported and 0 ready so far; the start goes on, for 5.00 s now"
    assert "Not all nodes are ready yet: it waits for node0001 (head) to start its raylet, for 3.00 s so far." in lines
    assert lines[-2:] == ["goes on  on       for  where", "raylet   1 node  3.00  node0001 (head)"]


@pytest.mark.parametrize("cause", [None, "node node0001: ulimit -n=256 is too low\n  and more"])
def test_timeline_of_a_start_that_ended_tells_what_it_had_waited_for_and_why(tmp_path, capsys, cause):
    path = tmp_path / "picture.json"
    ending = Ending(at=BEGAN + 5, code=130 if cause is None else 4, cause=cause)
    path.write_text(json.dumps(picture(phase="ended", ending=ending, tracks=ON_ITS_WAY, **NODES_START).to_json()))
    assert main(["timeline", "--from", str(path)]) == 0
    text = capsys.readouterr().out
    assert text.startswith("the nodes: 1 node, not all ready when it ended after 5.00 s\n")
    assert "at the end it had waited 3.00 s for node0001 (head) to start its raylet." in text
    assert "goes on" not in text
    failed = [line for line in text.splitlines() if line.startswith("It failed: ")]
    assert failed == ([] if cause is None else ["It failed: node node0001: ulimit -n=256 is too low"])


def test_timeline_json_has_the_same(saved, capsys):
    assert main(["timeline", "--json", "--from", str(saved)]) == 0
    found = json.loads(capsys.readouterr().out)
    (path,) = found["paths"]
    assert (path["world"], path["seconds"], path["is_complete"]) == ("main", 6.0, True)
    assert sum(step["seconds"] for step in path["steps"]) == pytest.approx(6.0, abs=1e-4)
    assert {"where", "span", "begin", "end", "seconds", "share", "before"} == set(path["steps"][0])
    assert {"span": "gcs", "on": "1 node", "median": 1.0, "longest": 1.0, "where": "node0001 (head)"} in found["spans"]


def test_timeline_writes_the_trace_beside_the_summary(saved, tmp_path, capsys):
    target = tmp_path / "trace.json"
    assert main(["timeline", "--from", str(saved), "-o", str(target)]) == 0
    said = capsys.readouterr()
    assert json.loads(target.read_text())["traceEvents"]
    assert "total" in said.out
    assert f"{target}: open it in https://ui.perfetto.dev" in said.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["picture.json", "trace.json"]


def test_timeline_prints_the_trace_alone(saved, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO(saved.read_text()))
    assert main(["timeline", "--from", "-", "-o", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["traceEvents"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--from", "missing.json"], "--from missing.json: cannot be read (No such file or directory)"),
        (["--from", "text"], "--from text: is no picture of a cluster ("),
        (["--from", "list"], "--from list: is no picture of a cluster ("),
        (["--from", "bytes"], "--from bytes: is no picture of a cluster ("),
        (["--from", "picture.json", "--job", "7"], "argument --job: not allowed with argument --from"),
        (["--from", "picture.json", "--json", "-o", "-"], "--json and -o -"),
        (
            ["--from", "picture.json", "-o", "nowhere/trace"],
            "-o nowhere/trace: cannot be written (No such file",
        ),
        (["--from", "picture.json", "-o", "."], "-o .: cannot be written (Is a directory)"),
    ],
)
def test_timeline_says_what_is_wrong(saved, tmp_path, monkeypatch, capsys, words, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text").write_text("no picture")
    (tmp_path / "list").write_text("[1, 2]")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    assert main(["timeline", *words]) == 2
    assert said in capsys.readouterr().err


def test_output_replaces_a_file_whole_and_keeps_its_mode(tmp_path):
    target, link = tmp_path / "trace", tmp_path / "link"
    target.write_text("before")
    target.chmod(0o640)
    link.symlink_to(target)
    with target.open() as reader:
        write_output(str(link), "after")
        assert reader.read() == "before"
    assert target.read_text() == "after"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert link.is_symlink()


def test_output_writes_into_what_is_no_file(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_output(str(pipe), "text")
        assert os.read(reader, 10) == b"text"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
