"""Log lines: their two forms, their ids; and every state change that is logged stands in the table and on the page."""

import ast
import json
import logging
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from eray._core import events
from eray._core.rendezvous import State, apply
from eray._core.state_changes import STATE_CHANGES, changes_by
from eray._core.topology import Node
from eray._core.world import Facts, JoinRequest, Stage
from eray._io.log_lines import JsonFormatter, TextFormatter, host_of, log_change

ROOT = Path(__file__).resolve().parents[2]
ALWAYS = {"time", "level", "logger", "host", "pid", "message"}
OWN_HANDLER = "logging.basicConfig(format='mine %(message)s')"
IDS = {"world", "generation", "process_index", "node"}


class Kept(logging.Handler):
    """Keeps what a formatter makes of each record."""

    def __init__(self, formatter: logging.Formatter) -> None:
        super().__init__()
        self.setFormatter(formatter)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


def lines_of(formatter: logging.Formatter, level: int = logging.DEBUG) -> tuple[logging.Logger, list[str]]:
    """Return a logger of its own, and the lines that it writes."""
    logger, kept = logging.Logger("eray._ray.head", level), Kept(formatter)
    logger.addHandler(kept)
    return logger, kept.lines


def test_json_line_has_the_time_in_utc_who_wrote_it_and_the_ids():
    logger, lines = lines_of(JsonFormatter("node01"))
    log_change(
        logger, "process-died", world="w", generation=2, process_index=3, node="node02", code=None, cause='a "b"'
    )
    found = json.loads(lines[0])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", found.pop("time"))
    assert isinstance(found.pop("pid"), int)
    assert found == {
        "level": "info",
        "logger": "eray._ray.head",
        "host": "node01",
        "node": "node02",
        "message": "process died",
        "event": "process-died",
        "world": "w",
        "generation": 2,
        "process_index": 3,
        "cause": 'a "b"',
    }


def test_json_line_tells_the_time_of_the_record():
    record = logging.makeLogRecord({"created": 1_772_380_801.0427, "name": "eray", "levelname": "WARNING"})
    assert json.loads(JsonFormatter("n").format(record))["time"] == "2026-03-01T16:00:01.042Z"


def test_json_line_of_words_is_one_line_with_its_traceback():
    logger, lines = lines_of(JsonFormatter("node01"))
    try:
        raise ValueError("two\nlines")
    except ValueError:
        logger.exception("a fault of %s", "eray\nhere")
    assert "\n" not in lines[0]
    found = json.loads(lines[0])
    assert (found["message"], found["node"], found["level"]) == ("a fault of eray\nhere", "node01", "error")
    assert found["exception"].endswith("ValueError: two\nlines")
    assert "event" not in found


def test_text_line_has_fields_that_grep_finds():
    logger, lines = lines_of(TextFormatter("node01"))
    log_change(logger, "node-lost", node="node02", node_rank=1, reason="no power,\nor no network?")
    logger.warning("words of %s", "a module")
    assert re.fullmatch(
        r"\d\d:\d\d:\d\d\.\d{3} INFO eray\._ray\.head: event=node-lost node=node02 node_rank=1 "
        r'reason="no power,\\nor no network\?" host=node01 pid=\d+',
        lines[0],
    )
    assert re.search(r" WARNING eray\._ray\.head: words of a module host=node01 pid=\d+$", lines[1])


def test_change_costs_nothing_where_nobody_asked():
    logger, lines = lines_of(TextFormatter("node01"), logging.WARNING)
    log_change(logger, "node-lost", node="node02", node_rank=1, reason="")
    assert lines == []


def test_host_is_slurms_name_of_the_node():
    assert host_of({"SLURMD_NODENAME": "node07"}) == "node07"
    assert host_of({}) != ""


# What is logged where.


def calls() -> Iterator[tuple[str, str, set[str], bool]]:
    """Yield each call of log_change: where, the event, the fields that it names, and whether it may pass more."""
    for module in sorted((ROOT / "eray").rglob("*.py")):
        text = module.read_text()
        for node in ast.walk(ast.parse(text)) if "log_change(" in text else ():
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "log_change":
                where, event = f"{module.relative_to(ROOT)}:{node.lineno}", node.args[1]
                name = event.value if isinstance(event, ast.Constant) else ""
                named = {keyword.arg for keyword in node.keywords if keyword.arg}
                yield where, str(name), named, any(keyword.arg is None for keyword in node.keywords)


def test_what_is_logged_stands_in_the_table_with_its_fields():
    found = [call for call in calls() if call[1]]
    assert len(found) > 15
    assert [call for call in found if not call[2] <= set(STATE_CHANGES.get(call[1], ()))] == []
    assert {name for _, name, *_ in found} | {"process-left"} == set(STATE_CHANGES)


def test_no_field_hides_who_wrote_the_line():
    assert [name for name, fields in STATE_CHANGES.items() if {*fields} & (ALWAYS | {"event"})] == []
    assert [
        name for name, fields in STATE_CHANGES.items() if name.startswith("process-") and not {*fields} >= IDS
    ] == []


def test_page_lists_every_event_with_its_fields():
    page = (ROOT / "docs/logging.md").read_text()
    rows = [[cell.strip() for cell in line.split("|")[1:3]] for line in page.splitlines() if line.startswith("| `")]
    listed = {name.strip("`"): tuple(fields.split(", ")) for name, fields in rows}
    assert listed == STATE_CHANGES


# What the coordinator makes of an event.


def request(index: int, node: str) -> JoinRequest:
    facts = Facts(node=node, node_rank=index, pid=7, local_index=0, local_count=1)
    return JoinRequest(world="w", process_index=index, process_count=2, join_id=f"j{index}", facts=facts)


def reported(index: int, stage: Stage) -> events.Reported:
    return events.Reported("w", 1, index, stage)


def died(index: int) -> events.ProcessDied:
    return events.ProcessDied("w", 1, index, "killed", 137)


def logged(*told: events.Event) -> list[str]:
    """Return what the last of these events logs: the event's name, and the values of its fields that are known."""
    state, lines = State(), []
    for now, event in enumerate(told):
        before, state = state, apply(state, event, float(now))
        lines = []
        for name, fields in changes_by(event, before, state):
            assert set(fields) <= set(STATE_CHANGES[name]), name
            values = [str(fields[each]) for each in STATE_CHANGES[name] if fields.get(each) is not None]
            lines.append(" ".join([name, *values]))
    return lines


NODES = [events.NodeAdded(Node(node_rank=rank, name=f"n{rank}", ray_node_id=f"r{rank}")) for rank in range(2)]
DECLARED = events.WorldDeclared("w", 2, 1)
JOINED = [events.Joined(request(index, f"n{index}")) for index in range(2)]
ALL = [*NODES, DECLARED, *JOINED]


@pytest.mark.parametrize(
    ("told", "lines"),
    [
        (NODES[:1], ["node-ready n0 0"]),
        ([DECLARED], ["world-declared w 1 2", "world-phase w 1 forming"]),
        ([*NODES, DECLARED, JOINED[0]], ["process-joined w 1 0 n0"]),
        (ALL, ["process-joined w 1 1 n1", "world-phase w 1 planned"]),
        ([*ALL, JOINED[1]], []),
        ([*ALL, reported(0, Stage.RUNNING)], ["process-running w 1 0 n0"]),
        (
            [*ALL, reported(0, Stage.RUNNING), reported(1, Stage.RUNNING)],
            ["process-running w 1 1 n1", "world-phase w 1 running"],
        ),
        (
            [*ALL, reported(0, Stage.LEFT)],
            ["process-left w 1 0 n0", "world-phase w 1 failed process 0 on n0 left before it had started"],
        ),
        (
            [*ALL, died(1)],
            ["process-died w 1 1 n1 137 killed", "world-phase w 1 failed process 1 on n1 died: killed"],
        ),
        (
            [*ALL, events.ProcessFailed("w", 1, 0, "no data")],
            ["process-failed w 1 0 n0 no data", "world-phase w 1 failed process 0 on n0: no data"],
        ),
        (
            [*ALL, events.NodeLost(1, "silent")],
            [
                "node-lost n1 1 silent",
                "process-died w 1 1 n1 silent",
                "world-phase w 1 failed node n1 was lost: silent",
            ],
        ),
        ([*ALL, died(1), events.WorldDeclared("w", 2, 2)], ["world-declared w 2 2", "world-phase w 2 forming"]),
        ([events.Warned("USR1 at n0")], ["preemption USR1 at n0"]),
    ],
)
def test_coordinator_logs_what_an_event_changed(told, lines):
    assert logged(*told) == lines


# Who configures it.


@pytest.mark.parametrize(
    ("words", "environ"), [(["--log-json", "plan"], {}), (["plan"], {"ERAY_LOG_FORMAT": "json"})], ids=str
)
def test_json_is_for_the_command_and_what_it_starts(words, environ):
    program = (
        "import logging, os, sys; from eray._cli.main import main; code = main(sys.argv[1:]); "
        "logging.getLogger('eray.x').info('hello'); logging.getLogger('other').info('not asked'); "
        "sys.exit(code or os.environ['ERAY_LOG_FORMAT'] != 'json')"
    )
    env = {"ERAY_LOG": "debug", "PYTHONPATH": str(ROOT), **environ}
    done = subprocess.run(
        [sys.executable, "-c", program, *words], env=env, capture_output=True, text=True, timeout=30, check=False
    )
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stderr.splitlines()]
    assert [(line["logger"], line["message"]) for line in found] == [("eray.x", "hello")]


@pytest.mark.parametrize(
    ("environ", "before", "after", "lines"),
    [
        ({}, "", "", []),
        ({"ERAY_LOG": "info"}, "", "", ["INFO eray.x: one host=h"]),
        ({"ERAY_LOG": "error"}, "", "", []),
        ({"ERAY_LOG": "info"}, OWN_HANDLER, "", ["mine one"]),
        ({"ERAY_LOG": "info"}, "", OWN_HANDLER, ["mine one"]),
        ({"ERAY_LOG": "info"}, "logging.getLogger('eray').setLevel('ERROR')", "", []),
    ],
    ids=["nothing set", "info", "error", "its own handler", "its own handler later", "its own level"],
)
def test_program_keeps_its_own_logging(environ, before, after, lines):
    code = f"""
import logging
from eray._io.log_lines import log_program
{before}
for _ in range(2):
    log_program({environ}, "h")
{after}
logging.getLogger("eray.x").info("one")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=False)
    found = done.stderr.splitlines()
    assert len(found) == len(lines), done.stderr
    assert [line for line, words in zip(found, lines, strict=True) if words not in line] == []
