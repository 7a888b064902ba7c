"""What `eray status` shows: the same facts in a pipe, in a narrow window and in colours."""

import io
import json
import os
import re
import signal
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from datetime import UTC
from typing import Any

import pytest
from pictures import BEGAN, picture

from eray._cli import status
from eray._cli.main import main
from eray._cli.status import is_rich, screen, unwound, watch
from eray._core.phase import Phase
from eray._core.picture import Ending, NodeView, Picture, Queued, Span, Track
from eray._core.topology import PreemptionNotice, Restart
from eray._show.lines import Line, shortened
from eray._show.log_hint import OUTPUT
from eray._show.status import StatusView, status_lines, status_text
from eray._show.wording import elapsed
from eray._show.words import hosts
from eray.errors import ClusterLostError, ErayError, JoinTimeoutError, RayAttachError, UsageError

JOINING: dict[str, Any] = {"phase": "starting", "world_phase": Phase.FORMING}
ALONE: dict[str, Any] = {"job": None, "key": "local-1a", "cluster": ""}
PLAIN_PROGRAM: dict[str, Any] = {
    "world_phase": Phase.FORMING,
    "states": ["awaited"] * 4,
    "tracks": (),
    "ending": Ending(at=BEGAN + 9, code=0),
}
REPORTED = (NodeView(node_rank=0, name="node0001", state="reported", since=BEGAN),)
RESTARTS = [
    Restart(
        generation=generation,
        process_count=4,
        cause=f"process {generation} died: killed",
        code=137,
        failed_at=BEGAN + 10 * generation,
        restarted_at=BEGAN + 10 * generation + 2,
    )
    for generation in range(1, 6)
]

NO_PROGRAM = (
    "process 0 on node0001 cannot be started: No such file or directory: 'x'; no directory of that node's PATH has "
    "'x'; give its whole path (127)"
)

IMPORTING = [
    Track(
        node="node0002", world="main", generation=1, process_index=3, spans=[Span(name="import jax", begin=BEGAN + 20)]
    )
]


def changed(shown: Picture, world: dict[str, Any] | None = None, **topology: Any) -> Picture:
    """Return the picture with other fields of its topology, and of its world."""
    assert shown.topology is not None
    worlds = tuple(each.model_copy(update=world or {}) for each in shown.topology.worlds)
    return shown.model_copy(update={"topology": shown.topology.model_copy(update={"worlds": worlds} | topology)})


def with_devices(shown: Picture, ids: list[tuple[int, ...]], rule: str) -> Picture:
    """Return the picture with other devices of its processes, in their order."""
    assert shown.topology is not None
    processes = shown.topology.worlds[0].processes
    held = [{"local_device_ids": each, "device_rule": rule} for each in ids]
    pairs = zip(processes, held, strict=True)
    return changed(shown, {"processes": tuple(process.model_copy(update=each) for process, each in pairs)})


RUNNING = """\
job 7 on rig, eray run: up for 1 min, head node0001
2 nodes: 2 ready
  node      state  address   CPUs  memory     devices   Ray node
  node0001  ready  10.0.0.0  64    512.0 GiB  4 × H200  00000000
  node0002  ready  10.0.0.1  64    512.0 GiB  4 × H200  00000000
world main, generation 1: running for 54 s
  processes   4 of 4 joined, 4 of 4 running
  coordinator 10.0.0.0:40001"""

NARROW = """\
job 7 on rig, eray run: up for 1 min,
  head node0001
2 nodes: 2 ready
  node0001: ready, address 10.0.0.0,
    CPUs 64, 512.0 GiB, 4 × H200, Ray
    node 00000000
  node0002: ready, address 10.0.0.1,
    CPUs 64, 512.0 GiB, 4 × H200, Ray
    node 00000000
world main, generation 1: running for
  54 s
  processes   4 of 4 joined, 4 of 4
    running
  coordinator 10.0.0.0:40001"""


def test_running_cluster_is_shown_whole():
    assert status_text(picture()) == RUNNING
    assert status_text(picture(), width=80) == RUNNING


def test_narrow_window_wraps_and_cuts_nothing():
    assert status_text(picture(), width=40) == NARROW


SAMPLES = {
    "awaited node": (
        picture(node_count=3, **JOINING, awaited=[2], states=["joined"] * 4 + ["awaited"] * 2),
        [
            "job 7 on rig, eray run: starting for 1 min, head node0001",
            "3 nodes: 1 awaited, 2 ready",
            "  node0003  awaited  -         -     -          -         -",
            "  awaited     node0003 to report to the head, for 1 min",
            "  processes   4 of 6 joined, 0 of 6 running",
            "  awaited     processes 4 and 5 (node0003) to join, for 54 s",
            "to do: look at the log of eray on node0003",
        ],
    ),
    "awaited node near the timeout": (
        picture(node_count=3, **JOINING, awaited=[2], timeouts={"ERAY_CLUSTER_TIMEOUT_S": 90}),
        ["to do: look at the log of eray on node0003, or raise ERAY_CLUSTER_TIMEOUT_S"],
    ),
    "Ray that takes its time": (
        picture(**JOINING, topology=None, nodes=REPORTED),
        ["1 node: 1 reported", "  awaited     node0001 to have its Ray ready, for 1 min"],
    ),
    "Ray that takes its time near the timeout": (
        picture(**JOINING, topology=None, nodes=REPORTED, timeouts={"ERAY_CLUSTER_TIMEOUT_S": 90}),
        ["to do: look at the log of eray on node0001, or raise ERAY_CLUSTER_TIMEOUT_S"],
    ),
    "head that does not answer yet": (
        picture(phase="starting", topology=None, nodes=(), tracks=(), taken_at=BEGAN + 0.4),
        ["job 7 on rig, eray run: starting, head node0001", "the head, node0001, does not answer yet"],
    ),
    "awaited process": (
        picture(**JOINING, states=["joined"] * 3 + ["awaited"]),
        [
            "  awaited     process 3 (node0002) to join, for 54 s",
            "to do: see whether process 3 (node0002) started and called eray.connect()",
        ],
    ),
    "awaited process near the timeout": (
        picture(**JOINING, states=["joined"] * 3 + ["awaited"], timeouts={"ERAY_JOIN_TIMEOUT_S": 80}),
        ["to do: see whether process 3 (node0002) started and called eray.connect(), or raise ERAY_JOIN_TIMEOUT_S"],
    ),
    "plain program that runs": (
        picture(world_phase=Phase.FORMING, states=["awaited"] * 4, tracks=()),
        [
            "world main, generation 1: forming for 54 s",
            "  processes   none of 4 has called eray.connect() yet: a plain program need not",
        ],
    ),
    "plain program of one process that runs": (
        picture(world_phase=Phase.FORMING, node_count=1, per_node=1, states=["awaited"], tracks=()),
        ["  processes   its process has not called eray.connect() yet: a plain program need not"],
    ),
    "processes on their way through connect()": (
        picture(world_phase=Phase.FORMING, states=["awaited"] * 4, tracks=(), connecting=[0]),
        [
            "  processes   0 of 4 joined, 0 of 4 running",
            "  awaited     processes 0-3 to join, for 54 s",
            "to do: see whether processes 0-3 started and called eray.connect()",
        ],
    ),
    "awaited process that imports JAX": (
        picture(**JOINING, states=["joined"] * 3 + ["awaited"], tracks=IMPORTING),
        [
            "  awaited     process 3 (node0002) to join, for 54 s",
            "              process 3 (node0002): still to import JAX, for 40 s",
            "to do: see whether process 3 (node0002) started and called eray.connect()",
        ],
    ),
    "Ray not ready": (
        picture(
            nodes=[
                NodeView(node_rank=0, name="node0001", state="reported", since=BEGAN + 58),
                NodeView(
                    node_rank=1, name="node0002", state="lost", since=BEGAN + 50, reason="no power,\n or no network?"
                ),
            ]
        ),
        [
            "2 nodes: 1 lost, 1 reported",
            "  awaited     node0001 to have its Ray ready, for 2 s",
            "  lost        node0002, 10 s ago: no power, or no network?",
        ],
    ),
    "failed world": (
        picture(
            world_phase=Phase.FAILED,
            failure="process 1 on node0001 died: killed",
            states=["left", "dead", "running", "left"],
        ),
        [
            "world main, generation 1: failed for 54 s",
            "  processes   4 of 4 joined, 1 of 4 running, 2 left, 1 dead",
            "  awaited     process 2 (node0002) to leave, for 54 s",
            "  failure     process 1 on node0001 died: killed",
            "to do: `eray logs --job 7 --tail 50`, on the node that failed, shows the end of the log that explains it",
        ],
    ),
    "ended badly": (
        picture(
            phase="ended", ending=Ending(at=BEGAN + 130, code=7, cause="process 1 ended with code 7:\n  boom \x1b[31m")
        ),
        [
            "job 7 on rig, eray run: ended with code 7 at 2023-11-14 22:15:30 UTC after 2 min 10 s",
            "  cause       process 1 ended with code 7: boom \ufffd[31m",
            "2 nodes: 2 had been ready",
            "  node      at the end  address   CPUs  memory     devices   Ray node",
            "world main, generation 1: was running for 2 min 4 s",
            "  processes   4 of 4 joined; process 1 failed first, the others ended because of it",
            f"to do: {OUTPUT}",
        ],
    ),
    "ended by a death": (
        picture(
            phase="ended",
            ending=Ending(at=BEGAN + 8, code=137, cause="node node0002 (processes 2 and 3) is lost: silence"),
            world_phase=Phase.FAILED,
            states=["left", "left", "dead", "dead"],
            failure="node node0002 was lost: silence",
            nodes=[
                NodeView(node_rank=0, name="node0001", state="ready", since=BEGAN + 3),
                NodeView(node_rank=1, name="node0002", state="lost", since=BEGAN + 5, reason="silence"),
            ],
        ),
        [
            "  cause       node node0002 (processes 2 and 3) is lost: silence",
            "2 nodes: 1 lost, 1 had been ready",
            "  lost        node0002, 3 s before the end: silence",
            "world main, generation 1: failed 2 s before the end",
            "  processes   4 of 4 joined",
            "  failure     node node0002 was lost: silence",
            "to do: `eray logs --job 7 --tail 50` shows the end of the log that explains it",
        ],
    ),
    "stopped while it started": (
        picture(
            phase="ended",
            ending=Ending(at=BEGAN + 60, code=143),
            world_phase=Phase.FORMING,
            states=["joined"] * 3 + ["awaited"],
        ),
        [
            "job 7 on rig, eray run: stopped by SIGTERM at 2023-11-14 22:14:20 UTC after 1 min",
            "world main, generation 1: not all had joined for 54 s",
            "  processes   3 of 4 joined, 0 of 4 were running at the end",
        ],
    ),
    "stopped at once": (
        picture(phase="ended", topology=None, nodes=(), ending=Ending(at=BEGAN + 0.3, code=130)),
        ["job 7 on rig, eray run: stopped by SIGINT at 2023-11-14 22:13:20 UTC", "no node is known"],
    ),
    "plain program that failed": (
        picture(phase="ended", **PLAIN_PROGRAM | {"ending": Ending(at=BEGAN + 9, code=3, cause="process 0 ended")}),
        [
            "world main, generation 1: not formed",
            "  processes   none of 4 had called eray.connect(): a plain program need not",
            f"to do: {OUTPUT}",
        ],
    ),
    "Ray that failed in a job": (
        picture(phase="ended", ending=Ending(at=BEGAN + 9, code=4, cause="the raylet ended; see its log")),
        ["to do: `eray logs --job 7 --tail 50` shows the end of the log that explains it"],
    ),
    "cluster of `eray up` that failed": (
        picture(phase="ended", purpose="up", ending=Ending(at=BEGAN + 9, code=5, cause="process 0 ended")),
        ["to do: `eray logs --job 7 --tail 50` shows the end of the log that explains it"],
    ),
    "failure whose cause has what to do": (
        picture(
            phase="ended",
            ending=Ending(at=BEGAN + 9, code=5, cause=str(JoinTimeoutError("main", "process 3", 300))),
        ),
        ["  processes   4 of 4 joined"],
    ),
    "program that does not exist": (
        picture(phase="ended", **PLAIN_PROGRAM | {"ending": Ending(at=BEGAN + 9, code=127, cause=NO_PROGRAM)}),
        [f"  cause       {NO_PROGRAM}"],
    ),
    "program whose error has a semicolon": (
        picture(
            phase="ended",
            purpose="tasks",
            ending=Ending(at=BEGAN + 9, code=5, cause="process 3 on n: raised ValueError: a; b"),
        ),
        [
            "job 7 on rig, eray.connect(): failed at 2023-11-14 22:13:29 UTC after 9 s",
            f"to do: {OUTPUT}",
        ],
    ),
    **{
        f"failed world, {', '.join(states)}": (
            picture(
                phase="ended",
                ending=Ending(at=BEGAN + 9, code=7, cause="process 1 on node0001 ended with code 7"),
                world_phase=phase,
                failure=failure,
                states=states,
            ),
            [
                "  processes   4 of 4 joined; process 1 failed first, the others ended because of it",
                f"to do: {OUTPUT}",
            ],
        )
        for phase, states, failure in (
            (Phase.FAILED, ["dead"] * 4, "process 1 on node0001 died: killed"),
            (Phase.FAILED, ["failed", "dead", "running", "left"], "process 0 on node0001: heard of it"),
            (Phase.RUNNING, ["running", "dead", "running", "running"], None),
        )
    },
    "failed world of one process": (
        picture(
            node_count=1,
            per_node=1,
            phase="ended",
            ending=Ending(at=BEGAN + 9, code=7, cause="process 0 on node0001 ended with code 7"),
            world_phase=Phase.FAILED,
            failure="process 0 on node0001 died",
        ),
        ["  processes   1 of 1 joined; process 0 failed", f"to do: {OUTPUT}"],
    ),
    "preemption after all worlds": (
        changed(picture(world_phase=Phase.CLOSED), preemption=PreemptionNotice(at=BEGAN + 50, reason="SIGUSR1")),
        ["  preemption  SIGUSR1, 10 s ago"],
    ),
    "program that failed on one machine": (
        picture(phase="ended", **ALONE, ending=Ending(at=BEGAN + 9, code=7, cause="process 0 ended with code 7")),
        [
            "to do: look at what `eray run` printed; of a cluster of one machine logs are kept only where Ray or eray "
            "failed"
        ],
    ),
    "Ray that failed on one machine": (
        picture(phase="ended", **ALONE, ending=Ending(at=BEGAN + 9, code=4, cause="the raylet ended")),
        ["to do: `eray logs --job local-1a --tail 50` shows the end of the log that explains it"],
    ),
    "failed world on one machine": (
        picture(**ALONE, world_phase=Phase.FAILED, failure="process 1 died"),
        ["to do: `eray logs --job local-1a --tail 50` shows the end of the log that explains it"],
    ),
    "failed world of a driver": (
        picture(**ALONE, purpose="up", world_phase=Phase.FAILED, failure="process 1 raised KeyError"),
        [
            "to do: read what the world's driver printed, for it hears all of the failure; "
            "`eray jobs list --job local-1a` shows the Ray Jobs among them"
        ],
    ),
    "failed world on a Ray of the user's": (
        picture(**ALONE, purpose="foreign", world_phase=Phase.FAILED, failure="process 1 died"),
        ["to do: look at the logs of Ray: eray did not start this cluster"],
    ),
    "plain program": (
        picture(phase="ended", **PLAIN_PROGRAM),
        ["2 nodes: 2 had been ready", "no process called eray.connect(): a plain program need not"],
    ),
    "plain program that ended before Ray was up": (
        picture(phase="ended", **PLAIN_PROGRAM | {"topology": None, "nodes": REPORTED}),
        ["1 node: 1 whose Ray was not up yet", "no process called eray.connect(): a plain program need not"],
    ),
    "ended well": (
        picture(
            phase="ended", purpose="up", job=None, key="local-1a", cluster="", ending=Ending(at=BEGAN + 3900, code=0)
        ),
        ["cluster local-1a, eray up: ended well at 2023-11-14 23:18:20 UTC after 1 h 5 min"],
    ),
    "restarted once": (
        picture(restarts=RESTARTS[:1], restart=2),
        [
            "job 7 (restart 2) on rig, eray run: up for 1 min, head node0001",
            "world main, generation 2: running for 54 s",
            "  restarted   once",
            "              2023-11-14 22:13:30 UTC, generation 1, back after 2 s: process 1 died: killed (code 137)",
        ],
    ),
    "restarted at once": (
        picture(restarts=[RESTARTS[0].model_copy(update={"restarted_at": BEGAN + 10.4})]),
        ["              2023-11-14 22:13:30 UTC, generation 1: process 1 died: killed (code 137)"],
    ),
    "restarted often": (
        picture(restarts=RESTARTS),
        [
            "  restarted   5 times; the last 3:",
            "              2023-11-14 22:14:10 UTC, generation 5, back after 2 s: process 5 died: killed (code 137)",
        ],
    ),
    "preemption": (
        changed(picture(), preemption=PreemptionNotice(at=BEGAN + 50, reason="SIGUSR1 on node0001")),
        [
            "  preemption  SIGUSR1 on node0001, 10 s ago",
            "to do: save before the job ends: `conn.should_save(step)` is true at one step in all processes",
        ],
    ),
    "idle devices": (
        with_devices(picture(), [(0,), (1,), (0,), (1,)], "ordinals"),
        ["  idle        devices 2, 3 of each of node[0001-0002], used by no process"],
    ),
    "shared device": (
        with_devices(picture(), [(0, 1), (1, 2, 3), (0, 1), (2, 3)], "ordinals"),
        ["  shared      device 1 of node0001, held by processes 0, 1"],
    ),
    "devices bound by Slurm": (  # each calls its own 0
        with_devices(picture(devices=2), [(0,)] * 4, "own"),
        ["  processes   4 of 4 joined, 4 of 4 running"],
    ),
    "before the coordinator": (
        picture(phase="starting", topology=None),
        ["  node0001  ready", "job 7 on rig, eray run: starting for 1 min, head node0001"],
    ),
    "Ray's dead node": (
        changed(
            picture(), nodes=tuple(node.model_copy(update={"alive": False}) for node in picture().topology.nodes[1:])
        ),
        ["2 nodes: 1 lost, 1 ready", "  node0002  lost   10.0.0.1  64    512.0 GiB  4 × H200  00000000"],
    ),
}


@pytest.mark.parametrize(("shown", "expected"), SAMPLES.values(), ids=SAMPLES)
def test_status_says_what_matters(shown, expected):
    lines = status_text(shown).splitlines()
    assert [line for line in expected if line not in lines] == []
    if not any(line.startswith("to do: ") for line in expected):
        assert not any(line.startswith("to do: ") for line in lines)


@pytest.mark.parametrize("shown", [shown for shown, _ in SAMPLES.values()], ids=SAMPLES)
@pytest.mark.parametrize("width", [40, 61, 120])
def test_width_is_kept_and_no_word_is_lost(shown, width):
    text = status_text(shown, width=width)
    assert max(map(len, text.splitlines())) <= width
    assert "\x1b" not in text
    letters = re.sub(r"\s", "", text)
    for line in status_lines(shown, width, UTC):
        assert re.sub(r"\s", "", line.text) in letters
    if width >= 40:
        words = {word for line in status_lines(shown, width, UTC) for word in re.split(r"[\s,]+", line.text)}
        assert {word for word in re.split(r"[\s,]+", text) if word} <= words, "no word is broken"


@pytest.mark.parametrize(
    ("about", "row"),
    [
        ({"per_node": 8, "devices": 8}, "  node[0001-1000]  ready  64    512.0 GiB  8 × H200"),
        ({"per_node": 1, "awaited": [6, 511]}, "  node[0007,0512]                      awaited  -     -          -"),
        (
            {"per_node": 1, "awaited": range(0, 1000, 2), "states": ["awaited", "joined"] * 500, **JOINING},
            "  awaited     500 processes: 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 34, 36,",
        ),
    ],
    ids=["alike", "two awaited", "every other node awaited"],
)
def test_thousand_nodes_are_a_few_rows_and_quickly_shown(about, row):
    shown = picture(node_count=1000, tracks=(), **about)
    begin = time.process_time()
    lines = status_text(shown, width=100).splitlines()
    assert time.process_time() - begin < 1.0
    assert len(lines) < 40
    assert row in lines


def test_nodes_of_many_kinds_stay_a_few_rows_with_those_that_are_not_ready_first():
    shown = picture(node_count=200, awaited=[150])
    assert shown.topology is not None
    nodes = tuple(node.model_copy(update={"cpus": node.node_rank}) for node in shown.topology.nodes)
    lines = status_text(changed(shown, nodes=nodes), width=100).splitlines()
    rows = [line for line in lines if re.match(r"  node[\[0-9]", line)]
    assert rows[0].split()[:2] in (["node0151", "awaited"], ["node0151:", "awaited"])
    assert "  node[0012-0150,0152-0200]  ready    -          various  512.0 GiB  4 × H200  -" in lines
    assert len(lines) < 40


def test_many_worlds_are_shown_briefly_but_for_those_that_live():
    shown = picture()
    assert shown.topology is not None
    (world,) = shown.topology.worlds
    closed = [world.model_copy(update={"name": f"try-{at}", "phase": Phase.CLOSED}) for at in range(30)]
    text = status_text(
        shown.model_copy(update={"topology": shown.topology.model_copy(update={"worlds": (*closed, world)})})
    )
    assert "24 earlier worlds" in text
    assert "world try-29, generation 1: closed, 4 of 4 joined" in text
    assert "world main, generation 1: running for 54 s" in text
    assert len(text.splitlines()) < 20


def test_low_window_leaves_out_ready_nodes_and_says_so():
    lines = status_lines(picture(node_count=8, awaited=[7], **JOINING), 100, UTC)
    kept = [line.text for line in shortened(lines, 100, 12)]
    assert len(kept) == 12
    assert "  (in a higher window: 4 more)" in kept
    assert any(line.startswith("  node0008  awaited") for line in kept)
    assert kept[-1] == lines[-1].text
    assert shortened(lines, 100, 50) == lines
    assert shortened([Line("a"), Line("b")], 100, 1) == [Line("a"), Line("b")], "nothing that matters is left out"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-1, "0 s"), (0.9, "0 s"), (3.2, "3 s"), (59.9, "59 s"), (60, "1 min"), (130, "2 min 10 s"), (3600, "1 h"),
        (3900, "1 h 5 min"), (3659, "1 h"), (90_000, "1 d 1 h"), (float("nan"), "an unknown time"),
    ],
)  # fmt: skip
def test_elapsed_has_two_units_at_most(seconds, text):
    assert elapsed(seconds) == text


@pytest.mark.parametrize(
    ("names", "length", "text"),
    [
        (["n1"], 1, "n1"),
        (["n1", "n2", "m"], 20, "n[1-2],m"),
        ([f"n{at}" for at in range(0, 100, 2)], 20, "n[0,2,4] and 47 more"),
        (["a b", "ü"], 20, "a b, ü"),
    ],
)
def test_hosts_are_folded_and_the_rest_is_counted(names, length, text):
    assert hosts(names, length) == text


# The command.


class Terminal(io.StringIO):
    """A terminal, as far as anybody asks."""

    def isatty(self) -> bool:
        """Claim to be one."""
        return True


COLOURS = {"TERM": "xterm-256color"}
STARTING, ENDED = picture(phase="starting"), picture(phase="ended", ending=Ending(at=BEGAN + 60, code=7))


@pytest.fixture
def sized(monkeypatch):
    """Let rich find a terminal of 80 columns, whatever is around the tests."""
    for name, value in {"TERM": "xterm-256color", "COLUMNS": "80", "LINES": "40"}.items():
        monkeypatch.setenv(name, value)
    for name in ("NO_COLOR", "FORCE_COLOR", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)


def followed(stream: io.StringIO, environ: dict[str, str], *pictures: Picture, as_json: bool = False) -> str:
    """Return what `--watch` writes to the stream while it sees these pictures."""
    with redirect_stdout(stream), screen(environ, as_json, live=True) as show:
        watch(look_at(*pictures), lambda error: None, show, lambda: None)
    return stream.getvalue()


def look_at(*seen: Picture | ErayError) -> Callable[[], Picture]:
    """Return what shows these in turn, and raises those that are errors."""
    turns = iter(seen)

    def look() -> Picture:
        turn = next(turns)
        if isinstance(turn, ErayError):
            raise turn
        return turn

    return look


@pytest.mark.parametrize(
    ("environ", "is_terminal", "rich"),
    [
        (COLOURS, True, True),
        (COLOURS, False, False),
        (COLOURS | {"NO_COLOR": "1"}, True, False),
        (COLOURS | {"NO_COLOR": ""}, True, True),  # no-color.org: an empty one does not count
        ({"TERM": "dumb"}, True, False),
        ({}, True, False),
    ],
)
def test_colours_are_for_terminals_that_may_have_them(environ, is_terminal, rich):
    assert is_rich(environ, is_terminal=is_terminal) is rich


@pytest.mark.parametrize(
    ("stream", "environ", "has_codes"),
    [
        (Terminal, COLOURS, True),
        (Terminal, COLOURS | {"NO_COLOR": "1"}, False),
        (Terminal, {"TERM": "dumb"}, False),
        (io.StringIO, COLOURS, False),
    ],
)
@pytest.mark.parametrize("live", [False, True])
def test_codes_are_written_to_terminals_only(sized, stream, environ, has_codes, live):
    written = stream()
    with redirect_stdout(written), screen(environ, False, live=live) as show:
        show(picture())
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", written.getvalue())
    assert ("\x1b" in written.getvalue()) is has_codes
    assert [line.rstrip() for line in plain.strip().splitlines()][: len(RUNNING.splitlines())] == RUNNING.splitlines()


def test_watch_rewrites_a_terminal_in_place_and_ends_with_the_cluster(sized):
    text = followed(Terminal(), COLOURS, STARTING, picture(), ENDED)
    assert text.count("\x1b[1A") >= 2 * (len(RUNNING.splitlines()) - 1), "the cursor goes up to redraw"
    assert "ended with code 7" in text
    assert text.endswith("\x1b[?25h"), "the cursor is shown again"


@pytest.fixture
def defaults():
    """Signals as in a new process: other tests may have let Ray set its own handlers here."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    for number in before:
        signal.signal(number, signal.SIG_DFL)
    yield
    for number, handler in before.items():
        signal.signal(number, signal.SIG_DFL if handler is None else handler)


@pytest.mark.parametrize(
    ("number", "error"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit), (signal.SIGHUP, SystemExit)]
)
def test_cursor_is_shown_again_after_a_signal(sized, defaults, number, error):
    written = Terminal()
    with pytest.raises(error) as caught, redirect_stdout(written), unwound(), screen(COLOURS, False, live=True) as show:
        watch(picture, lambda error: None, show, lambda: signal.raise_signal(number))
    assert written.getvalue().endswith("\x1b[?25h")
    assert getattr(caught.value, "code", 128 + number) == 128 + number


@pytest.mark.parametrize("as_json", [False, True])
def test_watch_in_a_pipe_prints_what_changed(as_json):
    later = [each.model_copy(update={"taken_at": BEGAN + 61}) for each in (STARTING, picture())]
    text = followed(io.StringIO(), COLOURS, STARTING, later[0], picture(), later[1], ENDED, as_json=as_json)
    if as_json:
        assert [json.loads(line)["phase"] for line in text.splitlines()] == ["starting", "up", "ended"]
    else:
        assert [each.split()[6] for each in text.split("\n\n")] == ["starting", "up", "ended"]


def test_watch_in_a_pipe_prints_nothing_again_that_reads_the_same():
    called = STARTING.model_copy(update={"connecting": (0,)})
    assert followed(io.StringIO(), {}, STARTING, called, ENDED).count("starting") == 1
    waiting = picture(world_phase=Phase.FORMING, states=["awaited"] * 4, tracks=())
    assert followed(io.StringIO(), {}, waiting, waiting.model_copy(update={"connecting": (0,)}), ENDED).count("up") == 2


def test_watch_in_a_pipe_prints_again_when_there_is_something_to_do():
    late = picture(**JOINING, awaited=[1])
    seen = [late.model_copy(update={"taken_at": BEGAN + at}) for at in (5, 8, 30, 40, 250)]
    texts = followed(io.StringIO(), {}, *seen, ENDED).split("\n\n")
    assert ["to do: look at the log of eray on node0002" in text for text in texts] == [False, True, True, False]
    assert ["or raise ERAY_CLUSTER_TIMEOUT_S" in text for text in texts] == [False, False, True, False]


NONE, GONE, SEVERAL = (
    RayAttachError("n1", "none", "start one"),
    ClusterLostError("n1", "gone", "see"),
    UsageError("two"),
)
AGAIN = ENDED.model_copy(update={"queued": Queued(state="PENDING", reason="BeginTime", restart=1)})


@pytest.mark.parametrize(
    ("seen", "awaited", "shown"),
    [
        ([ENDED, ENDED], [], [ENDED]),
        ([ENDED, STARTING, ENDED], [], [STARTING, ENDED]),
        ([NONE, STARTING, ENDED], [None], [STARTING, ENDED]),
        ([NONE, NONE], [None, None], NONE),
        ([NONE, NONE, NONE, STARTING, ENDED], ["PENDING"] * 3, [STARTING, ENDED]),
        ([STARTING, NONE], [None], NONE),
        ([GONE], [None], GONE),
        ([GONE, STARTING, ENDED], ["PENDING"], [STARTING, ENDED]),
        ([SEVERAL], [None], SEVERAL),
        ([picture(), AGAIN, AGAIN, STARTING, ENDED], [], [picture(), AGAIN, AGAIN, STARTING, ENDED]),
        ([AGAIN, ENDED], [], [AGAIN, ENDED]),
    ],
    ids=[
        "ended",
        "begun together with another start",
        "begun together with the first start",
        "none",
        "pending",
        "gone meanwhile",
        "lost",
        "lost and pending",
        "several",
        "requeued",
        "requeued and cancelled",
    ],
)
def test_watch_waits_for_a_cluster_that_may_come(capsys, seen, awaited, shown):
    told, pictures = iter(awaited), []
    if isinstance(shown, ErayError):
        with pytest.raises(type(shown)) as caught:
            watch(look_at(*seen), lambda error: next(told), pictures.append, lambda: None)
        assert caught.value is shown
    else:
        watch(look_at(*seen), lambda error: next(told), pictures.append, lambda: None)
        assert pictures == shown
    assert list(told) == []
    said = dict.fromkeys(f"eray: {each}; waiting for it\n" for each in awaited if each is not None)
    assert capsys.readouterr().err == "".join(said)


@pytest.mark.parametrize(
    ("purpose", "phase", "words"),
    [
        ("tasks", Phase.FAILED, "ended after its last world had failed"),
        ("tasks", Phase.CLOSED, "ended well"),
        ("run", Phase.FAILED, "ended well"),
    ],
)
def test_program_whose_code_is_not_known_ends_as_its_last_world(purpose, phase, words):
    shown = picture(phase="ended", purpose=purpose, world_phase=phase, ending=Ending(at=BEGAN + 9, code=0))
    assert f": {words} at " in status_text(shown).splitlines()[0]


def test_job_that_was_requeued_says_so_and_counts_as_changed():
    lines = status_text(AGAIN).splitlines()
    assert "  queue       PENDING (BeginTime): the job starts again (restart 1)" in lines
    text = followed(io.StringIO(), {}, picture(), ENDED.model_copy(update={"queued": None}))
    assert "queue" not in text
    text = followed(io.StringIO(), {}, picture(), AGAIN, AGAIN, ENDED)
    assert len(text.split("\n\n")) == 3


def test_view_is_as_wide_as_its_console():
    from rich.console import Console

    console = Console(file=io.StringIO(), width=40)
    console.print(StatusView(picture()))
    assert [line.rstrip() for line in console.file.getvalue().splitlines()] == NARROW.splitlines()


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Let the home have the last picture of job 7, and this machine no cluster."""
    for name in [name for name in os.environ if name.startswith(("SLURM_", "ERAY_"))]:
        monkeypatch.delenv(name)
    kept = tmp_path / "state" / "jobs" / "rig-7"
    kept.mkdir(parents=True)
    (kept / "picture.json").write_text(json.dumps(ENDED.to_json()))
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("ERAY_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("ERAY_TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setenv("PATH", str(tmp_path))  # no squeue
    monkeypatch.setattr(status, "PAUSE_S", 0.0)


@pytest.mark.parametrize("words", [[], ["--watch"]])
def test_command_shows_how_a_job_ended(home, capsys, words):
    assert main(["status", "--job", "7", *words]) == 0
    out = capsys.readouterr().out
    assert out.startswith("job 7 on rig, eray run: ended with code 7 at ")
    assert "\x1b" not in out


@pytest.mark.parametrize("words", [[], ["--watch"]])
def test_command_prints_json_that_other_commands_read(home, capsys, words):
    assert main(["status", "--job", "7", "--json", *words]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert json.loads(line)["waits"] == {"nodes": [], "worlds": []}
    assert Picture.model_validate_json(line) == ENDED


def test_command_without_a_cluster_says_what_to_do(home, capsys):
    assert main(["status"]) == 4
    said = capsys.readouterr()
    assert said.out == ""
    assert "start one by `eray run` or `eray up`" in said.err
