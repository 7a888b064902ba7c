"""`eray report`: who holds which device, what is wrong, which starts are shown, and a page that is safe and small."""

import base64
import hashlib
import json
import os
import re
import subprocess
import sys
import tomllib
from html.parser import HTMLParser
from importlib import resources
from itertools import pairwise
from pathlib import Path

import pytest
from pictures import BEGAN, picture

from eray._cli.main import main
from eray._core.phase import Phase
from eray._core.picture import Ending, NodeView, Picture, Span, Track
from eray._core.topology import Device, Node, PreemptionNotice, Process, Restart
from eray._show.node_rows import node_rows
from eray._show.ownership import Claim, cells
from eray._show.report import FILES, render
from eray._show.starts import starts
from eray._show.troubles import troubles
from eray._show.wording import clean, duration, folded, moment

TEXTS = {name: resources.files("eray._show").joinpath(name).read_text("utf-8") for name in FILES}
HOSTILE = "</script><script>alert('x')</script><img src=x onerror=alert(1)>&amp;\"'`\u202e\u2028\x00]]>-->"


def node(*tokens: str, uuids: tuple[str | None, ...] = ()) -> Node:
    """Return a node with these devices."""
    found = [uuids[at] if at < len(uuids) else None for at in range(len(tokens))]
    devices = tuple(Device(ordinal=at, token=token, uuid=found[at]) for at, token in enumerate(tokens))
    return Node(node_rank=0, name="n", devices=devices)


def process(index, visible, ids, rule="split", state="running", world=0, since=None) -> Claim:
    """Return a process on that node; ``visible`` is a text as in CUDA_VISIBLE_DEVICES."""
    return Claim(
        world,
        Process(
            process_index=index,
            node_rank=0,
            local_index=index,
            pid=1,
            visible=None if visible is None else tuple(filter(None, visible.split(","))),
            local_device_ids=ids,
            device_rule=rule,
            state=state,
        ),
        since,
    )


FOUR = node("0", "1", "2", "3")


@pytest.mark.parametrize(
    ("of", "claims", "expected"),
    [
        pytest.param(FOUR, [], ["0 idle", "1 idle", "2 idle", "3 idle"], id="nobody"),
        pytest.param(
            FOUR,
            [process(0, "0,1,2,3", (0, 1)), process(1, "0,1,2,3", (2, 3))],
            ["0 running 0", "1 running 0", "2 running 1", "3 running 1"],
            id="split",
        ),
        pytest.param(
            FOUR,
            [process(0, "2", (0,), "own"), process(1, "3", (0,), "own")],
            ["0 idle", "1 idle", "2 running 0", "3 running 1"],
            id="narrowed: the token tells, not the ordinal",
        ),
        pytest.param(
            FOUR,
            [process(0, "3,1", (1,)), process(1, "0", None)],
            ["0 running 1", "1 running 0", "2 idle", "3 idle"],
            id="order of the list; one visible device is held",
        ),
        pytest.param(
            FOUR,
            [process(0, "0,1", (0, 1)), process(1, "1,2", (0, 1))],
            ["0 running 0", "1 shared 0,1", "2 running 1", "3 idle"],
            id="overlap",
        ),
        pytest.param(
            FOUR,
            [process(0, "0,1", None, "none"), process(1, "0,1", None, "none")],
            ["0 open 0,1", "1 open 0,1", "2 idle", "3 idle"],
            id="JAX decides",
        ),
        pytest.param(node("0", "1"), [process(0, None, None, None)], ["0 open 0", "1 open 0"], id="unset: all of them"),
        pytest.param(node("0", "1"), [process(0, None, (1,))], ["0 idle", "1 running 0"], id="unset, with ordinals"),
        pytest.param(node("0", "1"), [process(0, "", None, "none")], ["0 idle", "1 idle"], id="sees none"),
        pytest.param(
            node("0", "1"),
            [process(0, "0", (0,), "own-bound"), process(1, "0", (0,), "own-bound")],
            ["0 running 0 assumed", "1 running 1 assumed"],
            id="bound by a control group: all call theirs 0, and share nothing",
        ),
        pytest.param(
            node("0"),
            [process(0, "0", (0,), "own"), process(1, "1", (0,), "own")],
            ["0 running 0", "1 running 1"],
            id="the supervisor saw less than the processes",
        ),
        pytest.param(
            node("0", "1", uuids=("GPU-aa11", "GPU-bb22")),
            [process(0, "GPU-bb", (0,)), process(1, "GPU-cc", (0,))],
            ["0 idle", "1 running 0", "GPU-cc running 1"],
            id="by the beginning of a UUID",
        ),
        pytest.param(
            node("0"),
            [process(0, "0", (0,), state="left", world=0, since=1.0), process(0, "0", (0,), world=1, since=2.0)],
            ["0 running 0"],
            id="a world that left holds nothing",
        ),
        pytest.param(
            node("0"),
            [process(3, "0", (0,), state="dead", since=1.0), process(0, "0", (0,), state="left", world=1, since=2.0)],
            ["0 left 0"],
            id="of two that ended the last counts",
        ),
        pytest.param(node("0"), [process(3, "0", (0,), state="failed")], ["0 dead 3"], id="failed"),
        pytest.param(node("0"), [process(0, "0", (0,), state="dialled")], ["0 starting 0"], id="starting"),
        pytest.param(None, [process(0, "0,1", (1,))], ["1 running 0"], id="a node that is not known"),
    ],
)
def test_cells_tell_who_holds_which_device(of, claims, expected) -> None:
    found = []
    for cell in cells(of, claims):
        held = ",".join(str(claim.process.process_index) for claim in cell.claims)
        found.append(" ".join(filter(None, [cell.token, cell.holding, held, "assumed" if cell.assumed else ""])))
    assert found == expected


def changed(base: Picture, processes: dict[int, dict], **world) -> Picture:
    """Return the picture with other fields in some processes and in its world."""
    assert base.topology is not None
    main = base.topology.worlds[0]
    new = tuple(each.model_copy(update=processes.get(each.process_index, {})) for each in main.processes)
    topology = base.topology.model_copy(update={"worlds": (main.model_copy(update={"processes": new, **world}),)})
    return base.model_copy(update={"topology": topology})


LOST = NodeView(node_rank=1, name="node0002", state="lost", since=BEGAN + 9, reason="no power")
RESTART = Restart(generation=1, process_count=4, cause="process 1 died", restarted_at=BEGAN + 30)


@pytest.mark.parametrize(
    ("seen", "level", "words"),
    [
        (changed(picture(), {3: {"local_device_ids": (1, 2)}}), "error", "device 1 of node0002; process 2, process 3"),
        (
            changed(picture(), {3: {"local_device_ids": (2,)}}),
            "warning",
            "idle, held by no process: device 3 of node0002",
        ),
        (picture(per_node=3), "warning", "JAX decides in each: devices 0, 1, 2, 3 of each of node[0001-0002]"),
        (
            picture(awaited=[1], states=["joined"] * 2 + ["awaited"] * 2, phase="starting", world_phase=Phase.FORMING),
            "warning",
            "1 node of 2 did not report yet: node0002",
        ),
        (
            picture(states=["joined"] * 2 + ["awaited"] * 2, world_phase=Phase.FORMING),
            "warning",
            "2 of 4 processes: processes 2–3",
        ),
        (
            picture(states=["joined"] * 3 + ["awaited"], world_phase=Phase.FORMING),
            "warning",
            "waits for 1 of 4 processes: process 3",
        ),
        (picture().model_copy(update={"nodes": (picture().nodes[0], LOST)}), "error", "node0002: no power"),
        (picture(states=["running", "dead", "dead", "dead"]), "error", "processes 1–3 on node[0001-0002]: dead"),
        (
            picture(failure="process 2 ended with 7", world_phase=Phase.FAILED),
            "error",
            "failed: process 2 ended with 7",
        ),
        (picture(ending=Ending(at=BEGAN, code=4, cause="gcs ended"), phase="ended"), "error", "with code 4: gcs ended"),
        (picture(restarts=[RESTART]), "note", "started again 1 time; the last time because process 1 died"),
    ],
)
def test_troubles_name_what_is_wrong_and_a_remedy(seen, level, words) -> None:
    found = [each for each in troubles(seen, node_rows(seen)) if words in each.found]
    assert [each.level for each in found] == [level]
    assert found[0].remedy


def test_troubles_of_the_past_do_not_wait() -> None:
    ended = Ending(at=BEGAN + 9, code=4, cause="gave up")
    more = {"world_phase": Phase.FAILED, "phase": "ended", "failure": "gave up"}
    seen = picture(awaited=[1], states=["joined"] * 2 + ["awaited"] * 2, ending=ended, **more)
    found = [each.found for each in troubles(seen, node_rows(seen))]
    assert found[1:] == [
        "1 node of 2 never reported: node0002",
        "world 'main' (generation 1): 2 of 4 processes never joined: processes 2–3",
    ]


@pytest.mark.parametrize(
    "about",
    [
        {"world_phase": Phase.FORMING, "states": ["joined"] * 3 + ["awaited"], "taken_at": BEGAN + 15},
        {"phase": "starting", "topology": None, "awaited": [1], "taken_at": BEGAN + 9},
        {
            "phase": "ended",
            "topology": None,
            "tracks": (),
            "awaited": [1],
            "ending": Ending(at=BEGAN + 9, code=0),
        },
    ],
    ids=["process for 9 s", "node for 9 s", "plain program"],
)
def test_what_may_still_come_or_was_not_needed_is_no_trouble(about) -> None:
    seen = picture(**about)
    assert troubles(seen, node_rows(seen)) == ()


def test_troubles_are_none_where_all_is_well() -> None:
    assert troubles(picture(), node_rows(picture())) == ()
    assert "Nothing is wrong." in render(picture(), TEXTS)


def test_troubles_tell_one_cause_once_and_the_worst_first() -> None:
    cause = "process 1 on node0001 (pid 7) ended with code 7"
    base = picture(states=["left", "failed", "left", "left"], failure=cause, world_phase=Phase.FAILED)
    assert base.topology is not None
    warned = base.topology.model_copy(update={"preemption": PreemptionNotice(at=BEGAN, reason="SIGUSR1")})
    ended = Ending(at=BEGAN + 50, code=7, cause=cause)
    seen = base.model_copy(update={"topology": warned, "ending": ended, "phase": "ended"})
    found = troubles(seen, node_rows(seen))
    assert [each.level for each in found] == ["error", "warning"]
    assert "end soon: SIGUSR1" in found[1].found


@pytest.mark.parametrize("states", [["dead"] * 4, ["failed", "dead", "running", "left"]])
def test_failed_world_reads_alike_however_quickly_the_others_ended(states) -> None:
    cause = "process 1 on node0001 (pid 7) ended with code 7"
    seen = picture(
        states=states,
        failure=cause,
        world_phase=Phase.FAILED,
        phase="ended",
        ending=Ending(at=BEGAN + 50, code=7, cause=cause),
    )
    assert [each.found for each in troubles(seen, node_rows(seen))] == [f"the cluster ended with code 7: {cause}"]
    page = render(seen, TEXTS)
    assert "4 of 4 joined; process 1 failed first, the others ended because of it" in page
    assert "processes running" not in page
    assert "exit code" in page


def test_failed_tasks_have_no_exit_code_but_slurms() -> None:
    seen = picture(purpose="tasks", phase="ended", ending=Ending(at=BEGAN + 50, code=5, cause="process 1 was killed"))
    assert [each.found for each in troubles(seen, node_rows(seen))] == ["the cluster failed: process 1 was killed"]
    assert "exit code" not in render(seen, TEXTS)


@pytest.mark.parametrize(
    ("states", "remedy"),
    [
        (["joined"] * 3 + ["awaited"], "see whether it started and called eray.connect()"),
        (["joined"] * 2 + ["awaited"] * 2, "see whether each started and called eray.connect()"),
    ],
)
def test_remedy_counts_the_processes(states, remedy) -> None:
    seen = picture(states=states, world_phase=Phase.FORMING)
    assert [each.remedy for each in troubles(seen, node_rows(seen))] == [remedy]


def test_remedy_that_a_cause_has_is_not_told_again() -> None:
    cause = "world 'main': process 3 did not join within 300 s; see whether that process started"
    ended = Ending(at=BEGAN + 9, code=5, cause=cause)
    seen = picture(phase="ended", world_phase=Phase.CLOSED, states=["left"] * 4, ending=ended)
    assert [each.remedy for each in troubles(seen, node_rows(seen))] == [""]
    assert "Remedy" not in render(seen, TEXTS)


def track(rank: int, index: int | None, begin: float, end: float | None, **more) -> Track:
    spans = (Span(name="import jax", begin=BEGAN + begin, end=None if end is None else BEGAN + end),)
    about = {"world": "main", "generation": 1} if index is not None else {}
    return Track(node=f"n{rank}", node_rank=rank, process_index=index, **{"spans": spans, **about, **more})


def test_starts_keep_generations_and_the_end_apart() -> None:
    stop = (Span(name="stop", begin=BEGAN + 900, end=BEGAN + 901),)
    again = track(0, 0, 500, 505, generation=2)
    seen = picture(tracks=(track(0, None, 0, 3), track(0, 0, 1, 4), again, track(0, None, 0, 0, spans=stop)))
    found = starts(seen)
    assert [(each.label, each.begin - BEGAN, each.end - BEGAN, each.rows) for each in found] == [
        ("first start", 0, 4, (0, 1)),
        ("world main, generation 2", 500, 505, (2,)),
        ("the end", 900, 901, (3,)),
    ]
    assert [each.stopping for each in found] == [False, False, True]


def test_starts_of_many_show_the_head_and_who_is_late() -> None:
    rows = [track(rank, None, 0, 9 if rank == 70 else 2) for rank in range(100)]
    rows += [track(rank, rank, 1, None if rank == 50 else 3) for rank in range(100)]
    (start,) = starts(picture(tracks=tuple(rows), head="n0"))
    assert len(start.rows) == 200
    assert [(rows[at].node, rows[at].process_index) for at in start.chosen] == [
        ("n0", None),
        ("n0", 0),
        ("n50", None),
        ("n50", 50),
        ("n70", None),
    ]


class Reader(HTMLParser):
    """Collects elements and attributes as a browser would see them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs


def data_of(page: str) -> dict:
    """Return what the page's script reads; NaN and the like, which no browser reads, fail."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return json.loads(found[1], parse_constant=pytest.fail)


def hostile() -> Picture:
    """Return a picture in which every text that somebody else decides is an attack."""
    base = picture(failure=HOSTILE, states=["running", "dead", "running", "running"], restarts=[RESTART])
    raw = json.loads(base.model_dump_json().replace("node0001", "@").replace("process 1 died", "@"))
    raw |= {"key": "@", "job": "@", "cluster": "@", "environment": {"@": "@"}, "versions": {"@": "@"}}
    raw |= {"remarks": [[BEGAN, "@"]], "ending": {"at": BEGAN, "code": 1, "cause": "@"}}
    raw["nodes"][1] |= {"reason": "@", "state": "lost"}
    raw["tracks"][0]["spans"][0]["name"] = "@"
    main = raw["topology"]["worlds"][0]
    main |= {"name": "@", "coordinator_address": "@"}
    main["processes"][0] |= {"visible": ["@"], "local_device_ids": [0], "state": "@", "device_rule": "@"}
    raw["topology"]["nodes"][0]["devices"][0] |= {"token": "@", "kind": "@", "uuid": "@"}
    raw["topology"]["nodes"][0] |= {"ports": {"@": 1}, "hostname": "@"}
    return Picture.model_validate_json(json.dumps(raw).replace('"@"', json.dumps(HOSTILE)))


def test_page_escapes_all_that_others_wrote() -> None:
    page = render(hostile(), TEXTS)
    calm = Reader(render(picture(states=["running", "dead", "running", "running"], restarts=[RESTART]), TEXTS))
    found = Reader(page)
    assert found.tags.count("script") == calm.tags.count("script") == 2
    assert "img" not in found.tags
    assert {name for name, _ in found.attributes if name.startswith("on")} == set()
    assert page.count("<script") == page.count("</script>") == 2
    assert "\u202e" not in page
    assert "\x00" not in page
    assert clean(HOSTILE) in data_of(page)["texts"]


def test_page_allows_its_own_script_and_style_only() -> None:
    page = render(hostile(), TEXTS)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    assert policy[1].startswith("default-src 'none'; ")
    for name in ("report.css", "report.js"):
        digest = base64.b64encode(hashlib.sha256(TEXTS[name].encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy[1]
        assert f">{TEXTS[name]}</" in page


def test_page_loads_nothing() -> None:
    found = Reader(render(picture(), TEXTS))
    assert not {"img", "iframe", "object", "embed", "video", "audio", "base", "form"} & set(found.tags)
    loads = [value for name, value in found.attributes if name in ("src", "href", "srcset", "action")]
    assert [value for value in loads if not value.startswith("#") and value != "data:,"] == []
    for name, text in TEXTS.items():
        addresses = re.findall(r"https?://[^\s\"']+|url\(|@import|//cdn", text)
        assert [each for each in addresses if each != "http://www.w3.org/2000/svg"] == [], name
    assert not re.search(
        r"\b(fetch|XMLHttpRequest|WebSocket|EventSource|sendBeacon|innerHTML|eval|import)\s*\(", TEXTS["report.js"]
    )


def test_page_headings_are_in_order_and_ids_are_unique() -> None:
    page = render(hostile(), TEXTS)
    levels = [int(each) for each in re.findall(r"<h([1-6])", page)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    ids = [value for name, value in Reader(page).attributes if name == "id"]
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'(?:aria-labelledby|aria-describedby|href)="#?([^":,]+)"', page)) <= set(ids)


def test_page_of_a_thousand_nodes_is_small() -> None:
    page = render(picture(node_count=1000, per_node=8, devices=8), TEXTS)
    assert len(page.encode()) < 3_000_000
    assert page.count('<tr data-s="ready running"') == 1000


@pytest.mark.parametrize(
    "seen",
    [
        picture(topology=None, nodes=(), tracks=(), versions={}, environment={}, remarks=(), phase="starting"),
        picture(devices=0),
        picture(taken_at=1e300, began_at=float("nan")),
        picture(tracks=(track(0, None, 0, float("inf")), track(0, 0, float("-inf"), 1))),
    ],
    ids=["nothing yet", "no devices", "times that no calendar has", "spans without end"],
)
def test_page_of_an_odd_picture_is_whole(seen) -> None:
    page = render(seen, TEXTS)
    assert page.endswith("</html>\n")
    assert data_of(page)["texts"]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0.00 s"),
        (9.994, "9.99 s"),
        (59.9, "59.9 s"),
        (60, "1 min"),
        (7509, "2 h 5 min"),
        (180_000, "2 d 2 h"),
        (float("nan"), "an unknown time"),
    ],
)
def test_duration_has_two_units_at_most(seconds, words) -> None:
    assert duration(seconds) == words


def test_wording_of_lists_and_times() -> None:
    assert folded([5, 0, 1, 2, 9, 10]) == "0–2, 5, 9–10"
    assert folded(range(0, 40, 2), most=2) == "0, 2 and 18 more ranges"
    assert moment(BEGAN) == "2023-11-14 22:13:20 UTC"
    assert clean("a\x1b[2Jb\ud800\n") == "a\ufffd[2Jb\ufffd\n"


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """Return a file as `eray status --json` writes it."""
    path = tmp_path / "picture.json"
    path.write_text(json.dumps(picture().to_json()))
    return path


def test_command_writes_the_page_whole_and_follows_the_umask(saved: Path, tmp_path: Path) -> None:
    target, link = tmp_path / "page.html", tmp_path / "link.html"
    link.symlink_to(target)
    before = os.umask(0o027)
    try:
        assert main(["report", "--from", str(saved), "-o", str(link)]) == 0
    finally:
        os.umask(before)
    assert link.is_symlink()
    assert target.read_text().startswith("<!doctype html>")
    assert target.stat().st_mode & 0o777 == 0o640
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.html", "page.html", "picture.json"]


def test_command_prints_to_a_pipe(saved: Path) -> None:
    command = [sys.executable, "-m", "eray", "report", "--from", "-", "-o", "-"]
    done = subprocess.run(command, input=saved.read_bytes(), capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(b"</html>\n")


@pytest.mark.parametrize(
    ("source", "output", "words"),
    [
        ("picture.json", "none/page.html", "-o {}/none/page.html: cannot be written (No such file or directory)"),
        ("picture.json", "", "-o {}/: cannot be written (Is a directory)"),
        ("none.json", "page.html", "--from {}/none.json: cannot be read (No such file or directory)"),
        ("broken.json", "page.html", "--from {}/broken.json: is no picture of a cluster (Invalid JSON"),
        ("other.json", "page.html", "--from {}/other.json: is no picture of a cluster (taken_at: Field required)"),
    ],
)
def test_command_names_the_file_and_the_reason(saved: Path, tmp_path: Path, capsys, source, output, words) -> None:
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "other.json").write_text("{}")
    before = sorted(tmp_path.iterdir())
    assert main(["report", "--from", str(tmp_path / source), "-o", f"{tmp_path}/{output}"]) == 2
    assert words.format(tmp_path) in capsys.readouterr().err
    assert sorted(tmp_path.iterdir()) == before


def test_command_needs_a_file_and_one_source(capsys) -> None:
    assert main(["report"]) == 2
    assert "-o" in capsys.readouterr().err
    assert main(["report", "-o", "-", "--job", "1", "--from", "x"]) == 2


def test_wheel_takes_all_files_of_the_package() -> None:
    """Hatch puts every file of a package into the wheel unless pyproject.toml excludes it or git ignores it."""
    root = Path(__file__).resolve().parents[2]
    wheel = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel == {"packages": ["eray"]}
    ignored = subprocess.run(
        ["git", "check-ignore", *(f"eray/_show/{name}" for name in FILES)], cwd=root, capture_output=True
    )
    assert ignored.stdout == b""
