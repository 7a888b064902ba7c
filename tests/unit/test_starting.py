"""Who wants a cluster that is just starting waits for it; where none is, the error says so at once."""

import json
import os
import socket
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from test_clusters import JOB, LOCAL, Place
from test_look import LOCAL as LOCAL_DOOR
from test_look import STEP, runs

from eray import _starting
from eray._core import naming
from eray._io import clock
from eray._own_cluster import start_of_own
from eray._starting import Start, find_started, start_here, when_started
from eray.errors import RayAttachError, UsageError


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the second look come at once."""
    monkeypatch.setattr(_starting, "AGAIN_S", 0.0)


NONE = RayAttachError("n1", "no cluster", "start one")
JOBS = Start("42", None)


def after(*answers):
    """Return a function that gives these one after the other, the last one for ever, and the count of its calls."""
    left, calls = list(answers), []

    def ask():
        calls.append(None)
        answer = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    return ask, calls


@pytest.mark.parametrize(
    ("looks", "starts", "found"),
    [
        (["it"], [None], "it"),
        ([NONE, "it"], [JOBS], "it"),
        ([NONE, "it"], [None], "it"),
        ([NONE, NONE, "it"], [JOBS, replace(JOBS, is_up=True)], "it"),
        ([NONE, NONE, "it"], [None, JOBS], "it"),
        ([NONE], [None], NONE),
        ([NONE], [JOBS, None], NONE),
        ([NONE], [replace(JOBS, is_up=True)], NONE),
    ],
    ids=[
        "there",
        "starting",
        "came up meanwhile",
        "its file is late",
        "begun together",
        "none",
        "ended at its start",
        "out of reach",
    ],
)
def test_a_start_is_waited_for(looks, starts, found, place: Place):
    look, _ = after(*looks)
    start_of, _ = after(*starts)
    if found is NONE:
        with pytest.raises(RayAttachError) as caught:
            when_started(place.site(), look, start_of)
        assert caught.value is NONE
    else:
        assert when_started(place.site(), look, start_of) == found


def test_wait_says_since_when_and_how_to_see_more_once_and_has_an_end(place: Place, capsys):
    look, calls = after(NONE)
    start_of, _ = after(Start("42", clock.unix() - 200.5))
    words = "the cluster of job 42 is starting, for 3 min 20 s so far"
    hint = "`eray status --job 42` shows whom it awaits"
    with pytest.raises(RayAttachError, match=f"{words}; it was waited for 0.15 s; {hint}"):
        when_started(place.site(ERAY_CLUSTER_TIMEOUT_S="0.15"), look, start_of)
    assert capsys.readouterr().err == f"eray: {words}; waiting for it, 0.15 s at most ({hint})\n"
    assert len(calls) > 1
    assert Start("local-1a", None).words == "the cluster local-1a is starting"


def test_what_starts_here_is_a_door_without_an_access(place: Place):
    assert start_here(place.site()) is None
    runs(place, LOCAL_DOOR)
    runs(place, replace(LOCAL_DOOR, key="local-2b", purpose="run"))
    runs(place, replace(STEP, key="42", restart=1))
    assert start_here(place.site()) == start_of_own(place.site()) == Start("local-1a", None)
    assert start_of_own(place.site(**JOB, SLURM_RESTART_COUNT="1")) == Start("42", None)
    assert start_of_own(place.site(**JOB)) is None, "of another life"
    runs(place, replace(LOCAL_DOOR, key="local-3c"))
    with pytest.raises(UsageError, match=r"several clusters run on this machine: local-1a .*, local-3c"):
        start_here(place.site())


def serves(place: Place, access):
    """Let a supervisor that starts be ready: it writes down how its Ray is reached."""
    run_dir = Path(naming.run_directory(str(place.tmp), os.getuid(), access.key, access.restart))
    about = json.loads((run_dir / "beacon.json").read_text())
    (run_dir / "node.json").write_text(json.dumps(asdict(access) | {name: about[name] for name in ("pid", "started")}))


def test_cluster_of_this_machine_that_is_up_does_not_start(place: Place):
    runs(place, LOCAL_DOOR)
    serves(place, LOCAL)
    assert start_here(place.site()) is None
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        assert find_started(place.site(), None, lambda access: address).key == "local-1a"
