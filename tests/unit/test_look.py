"""Who looks finds the cluster that is meant: on this machine, by the home, or how it ended."""

import asyncio
import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from pictures import picture
from test_access import ACCESS, HOME
from test_clusters import JOB, Place
from test_nodes import free_port
from test_queue import PENDING, Squeue, row

from eray import _starting
from eray._cli.job_access import dashboard_of
from eray._core import naming
from eray._core.access import LIFE, START, Door
from eray._core.handshake import Credentials
from eray._core.nodespec import LOOK
from eray._core.picture import Ending, Picture, Queued
from eray._io import beacon, clock, process
from eray._io.channel import Channel
from eray._look import DIAL_S, Window
from eray._starting import find_started
from eray.errors import ClusterLostError, DirectoryError, ErayError, RayAttachError, SecretError, UsageError

TOKEN = "t" * 64
NAMED = {"purpose": "up", "node": "n1", "auth": "token", "hosts": ("127.0.0.1",), "ports": (1,)}
STEP = Door(key="42.0", job="42", cluster="rig", restart=0, **NAMED)
LOCAL = Door(key="local-1a", job=None, cluster="", restart=0, **NAMED)
Heads = Callable[..., Door]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture
def head() -> Iterator[Heads]:
    """Let a head listen in a thread, and show pictures, in turn, to those who look."""
    loop, servers = asyncio.new_event_loop(), []
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    def start(door: Door, *pictures: Picture, token: str = TOKEN) -> Door:
        async def show(channel: Channel) -> None:
            for each in pictures:
                assert (await channel.receive())["type"] == LOOK
                await channel.send_large({"picture": each.to_json()})

        door = replace(door, ports=(free_port(),))
        credentials = Credentials(token, door.fingerprint, door.key)
        listening = beacon.listen("127.0.0.1", door.ports, credentials, handler=show)
        servers.append(asyncio.run_coroutine_threadsafe(listening, loop).result(5))
        return door

    yield start
    for server in servers:
        asyncio.run_coroutine_threadsafe(server.close(), loop).result(5)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(5)
    loop.close()


def runs(place: Place, door: Door) -> Path:
    """Let a supervisor serve a cluster on this machine: this process."""
    run_dir = Path(naming.run_directory(str(place.tmp), os.getuid(), door.key, door.restart))
    run_dir.mkdir(parents=True)
    run_dir.parent.chmod(0o700)
    (run_dir / "token").write_text(TOKEN)
    about = asdict(replace(door, token_path=str(run_dir / "token")))
    about |= {"pid": os.getpid(), "started": process.start_time(os.getpid())}
    (run_dir / "beacon.json").write_text(json.dumps(about))
    return run_dir


def keeps(place: Place, kind: str, about: Any, directory: str = "rig-42") -> None:
    """Let a head have written into the home."""
    where = place.state / "jobs" / directory
    where.mkdir(parents=True, exist_ok=True)
    key = about["key"] if isinstance(about, dict) else about.key
    (where / naming.job_file(kind, key if directory != "local" else "")).write_text(
        json.dumps(about if isinstance(about, dict) else asdict(about))
    )


def look(place: Place, wanted: str | None = None, dial_s: float = DIAL_S, **environ: str) -> Picture:
    window = Window(place.site(**environ), wanted, dial_s)
    try:
        return window.picture()
    finally:
        window.close()


def test_cluster_of_this_machine_is_drawn_anew_each_time(place: Place, head: Heads) -> None:
    starting, up = (picture(key="local-1a", job=None, phase=phase) for phase in ("starting", "up"))
    run_dir = runs(place, head(LOCAL, starting, up))
    window = Window(place.site())
    assert [window.picture(), window.picture()] == [starting, up]
    ended = picture(key="local-1a", job=None, phase="ended")
    keeps(place, "picture", ended.to_json(), "local")
    (run_dir / "beacon.json").unlink()
    assert window.picture() == ended, "the head has hung up"
    window.close()
    for key in ("local-2b", "local-3c"):
        runs(place, replace(LOCAL, key=key))
    with pytest.raises(
        UsageError, match=r"local-2b \(`eray up`\), local-3c \(`eray up`\); choose one with `--job local-2b`"
    ):
        look(place)


def test_picture_of_a_large_cluster_comes_in_parts(place: Place, head: Heads) -> None:
    large = picture(key="local-1a", job=None, node_count=200, per_node=8)
    runs(place, head(LOCAL, large))
    assert look(place) == large


def test_job_of_another_machine_is_reached_by_what_its_head_wrote(place: Place, head: Heads) -> None:
    door = replace(STEP, fingerprint=naming.secret_fingerprint(HOME))
    (place.state / "secret").write_text(HOME.hex())
    (place.state / "secret").chmod(0o600)
    token = naming.cluster_token(HOME, door.cluster, door.key, door.restart)
    shown = picture(key="42.0")
    keeps(place, "beacon", head(door, shown, shown, shown, token=token))
    assert look(place, "42") == look(place, "42.0") == look(place, **JOB) == shown
    (place.state / "secret").write_text("ab" * 32)
    with pytest.raises(SecretError, match="its token does not follow from it"):
        look(place, "42")


def test_jobs_own_cluster_comes_before_those_of_its_steps(place: Place, head: Heads) -> None:
    own = picture(key="42")
    runs(place, head(STEP, picture(key="42.0")))
    runs(place, head(replace(STEP, key="42"), own))
    assert look(place, "42") == own


GONE = (
    rf"^node {socket.gethostname()}: the head of the cluster of job 42, {STEP.node}, does not answer, and how it ended "
    r"was not kept; look at `eray logs --job 42`, and see by `squeue -j 42` whether it still runs; [^()]*$"
)


def test_ended_job_is_shown_as_it_was_and_a_dead_head_is_named(place: Place) -> None:
    dead = replace(STEP, key="42", auth="disabled", ports=(free_port(),))
    keeps(place, "beacon", dead)
    with pytest.raises(ClusterLostError, match=GONE):
        look(place, "42", dial_s=0.1)
    ended = picture(key="42", phase="ended", ending=Ending(at=1.0, code=137, cause="process 1 died"))
    keeps(place, "picture", ended.to_json())
    (place.state / "jobs/rig-42/beacon.json").unlink()
    assert look(place, "42") == look(place, **JOB) == ended


MARK = {"key": "42", "job": "42", "cluster": "rig", "restart": 0, "purpose": "run", "timeout_s": 120.0}
GONE_PID = 2**22 + 1  # no kernel gives it


@pytest.mark.parametrize(
    ("ago_s", "mark", "shown"),
    [
        (1.0, {}, "starting"),
        (1.0, {"node": "another"}, "starting"),
        (1.0, {"pid": GONE_PID}, "ended"),
        (121.0, {}, "ended"),
        (20.0, {}, "ended"),
        (1.0, None, "ended"),
    ],
    ids=["called", "called elsewhere", "killed", "hangs", "ended since", "of another version"],
)
def test_a_new_start_in_a_job_hides_how_the_one_before_ended(place: Place, ago_s, mark, shown) -> None:
    now = clock.unix()
    ended = picture(key="42", phase="ended", taken_at=now - 10, ending=Ending(at=now - 10, code=0))
    keeps(place, "picture", ended.to_json())
    about = {"began_at": now - ago_s, "node": socket.gethostname(), "pid": os.getpid()}
    about |= {"started": process.start_time(os.getpid())}
    keeps(place, START, {"key": "42"} if mark is None else MARK | about | mark)
    found = look(place, "42")
    assert (found.phase, found.key) == (shown, "42")
    if shown == "starting":
        assert (found.began_at, found.purpose, found.head) == (now - ago_s, "run", (about | mark)["node"])


@pytest.mark.parametrize(("ago_s", "starts"), [(1.0, True), (1000.0, False)], ids=["starts", "hangs"])
def test_head_of_this_machine_that_does_not_answer_yet_is_starting(place: Place, ago_s, starts) -> None:
    runs(place, replace(LOCAL, ports=(free_port(),), began_at=clock.unix() - ago_s))
    if starts:
        found = look(place, dial_s=0.1)
        assert (found.phase, found.key) == ("starting", "local-1a")
    else:
        with pytest.raises(ClusterLostError, match="does not answer"):
            look(place, dial_s=0.1)


def test_dead_head_is_not_shown_as_the_one_before_it(place: Place) -> None:
    ended = picture(key="42", phase="ended", taken_at=100.0, ending=Ending(at=100.0, code=0))
    keeps(place, "picture", ended.to_json())
    keeps(place, "beacon", replace(STEP, key="42", auth="disabled", ports=(free_port(),), began_at=200.0))
    with pytest.raises(ClusterLostError, match=GONE):
        look(place, "42", dial_s=0.1)


def lives(place: Place, door: Door, pid: int, **about: Any) -> None:
    """Let a supervisor of a cluster of this machine alone have told of its life in the home."""
    where = place.state / "jobs" / "local"
    where.mkdir(parents=True, exist_ok=True)
    told = asdict(door) | {"host": socket.gethostname(), "pid": pid, "started": process.start_time(os.getpid())} | about
    (where / naming.life_file(LIFE, door.key)).write_text(json.dumps(told))


KILLED = replace(LOCAL, purpose="run", program=("python", "train.py"), began_at=200.0)


@pytest.mark.parametrize(
    ("wanted", "ended_at", "about", "shown"),
    [
        (None, 100.0, {}, r"the cluster local-1a \(`eray run -- python train.py`\) was killed: its process is gone"),
        ("local-1a", 100.0, {}, "local-1a .* was killed"),
        ("local-1a", None, {}, "local-1a .* was killed"),
        ("local-9f", 100.0, {}, "local-9f"),
        (None, 300.0, {}, None),
        (None, 100.0, {"host": "another"}, None),
    ],
    ids=["last", "by name", "first of all", "another by name", "ended since", "of another machine"],
)
def test_cluster_of_this_machine_that_was_killed_is_no_earlier_one(place, wanted, ended_at, about, shown) -> None:
    lives(place, KILLED, GONE_PID, **about)
    ended = picture(key="local-9f", job=None, phase="ended", taken_at=ended_at or 0, ending=Ending(at=1.0, code=0))
    if ended_at is not None:
        keeps(place, "picture", ended.to_json(), "local")
    if shown is None or wanted == "local-9f":
        assert look(place, wanted) == ended
        return
    with pytest.raises(ClusterLostError, match=shown):
        look(place, wanted)


def test_cluster_below_another_directory_of_this_machine_is_seen_too(place: Place, head: Heads) -> None:
    up = picture(key="local-1a", job=None, phase="up")
    token = place.state / "token"
    token.write_text(TOKEN)
    door = head(replace(LOCAL, token_path=str(token)), up)
    lives(place, door, os.getpid())
    assert look(place) == up
    runs(place, replace(LOCAL, key="local-2b"))
    with pytest.raises(UsageError, match=r"several clusters run on this machine: local-1a .*, local-2b "):
        look(place)


def test_nothing_to_look_at_says_where_was_looked(place: Place) -> None:
    with pytest.raises(
        RayAttachError,
        match=r"no cluster of yours runs on this machine, by .* \(ERAY_TMPDIR\), .* `eray run` or `eray up`",
    ):
        look(place)
    runs(place, LOCAL)
    with pytest.raises(RayAttachError, match=r"no cluster of job 9 .*; on this machine runs local-1a .*; a job gets a"):
        look(place, "9")
    with pytest.raises(UsageError, match=r"--job nope: is no job's id; .*; on this machine runs local-1a "):
        look(place, "nope")


@pytest.fixture
def squeue(tmp_path: Path) -> Squeue:
    return Squeue(tmp_path)


def error_of(window: Window) -> ErayError:
    with closing(window), pytest.raises(ErayError) as caught:
        window.picture()
    return caught.value


RUNS = row("rig", "42", "0", "RUNNING", "None")
QUEUED = "job 42 has no cluster yet and is "


@pytest.mark.parametrize(
    ("answer", "wanted", "environ", "awaited"),
    [
        (PENDING, "42", {}, f"{QUEUED}PENDING (Priority)"),
        (PENDING, "42.0", {}, f"{QUEUED}PENDING (Priority)"),
        (RUNS, "42", {}, f"{QUEUED}RUNNING"),
        (PENDING, "9", {}, None),
        (PENDING, None, {}, None),
        (PENDING, "local-1a", {}, None),
        ("", None, JOB, "job 42 has no cluster yet"),
        ("", "42", JOB, "job 42 has no cluster yet"),
        ("", "9", JOB, None),
    ],
    ids=["pending", "step", "runs", "unknown", "this machine", "local", "in the job", "the job by name", "another job"],
)
def test_cluster_of_a_job_in_the_queue_is_awaited(place: Place, squeue, answer, wanted, environ, awaited) -> None:
    squeue.answers(answer)
    window = Window(place.site(**squeue.environ, **environ), wanted)
    error = error_of(window)
    assert window.awaited(error) == awaited
    assert (" in Slurm's queue: `eray status --job 42" in str(error)) == bool(awaited and QUEUED in awaited)
    assert ("; Slurm's queue does not have job 9: it is over, or " in str(error)) == (wanted == "9")
    assert window.awaited(UsageError("several")) is None


@pytest.mark.parametrize(
    ("answer", "awaited"), [(PENDING, "job 42 is PENDING (Priority)"), (RUNS, None), ("", None)], ids=str
)
def test_cluster_that_was_killed_is_awaited_while_its_job_does_not_run(place: Place, squeue, answer, awaited) -> None:
    squeue.answers(answer)
    keeps(place, "beacon", replace(STEP, key="42", auth="disabled", ports=(free_port(),)))
    window = Window(place.site(**squeue.environ), "42", dial_s=0.1)
    error = error_of(window)
    assert window.awaited(error) == awaited
    over = "; Slurm's queue has job 42 no more, so Slurm ended it before the head could say how; `sacct -j 42` and"
    assert (over in str(error)) == (not answer)


@pytest.mark.parametrize(
    ("code", "restart", "line", "queued"),
    [
        (143, 0, row("rig", "42", "1", "COMPLETING", "None"), Queued(state="COMPLETING", reason="None", restart=1)),
        (143, 0, row("rig", "42", "1", "PENDING", "BeginTime"), Queued(state="PENDING", reason="BeginTime", restart=1)),
        (143, 1, row("rig", "42", "1", "RUNNING", "None"), None),
        (143, 0, row("other", "42", "1", "RUNNING", "None"), None),
        (143, 0, "", None),
        (0, 0, row("rig", "42", "1", "RUNNING", "None"), Queued(state="RUNNING", reason="None", restart=1)),
    ],
    ids=["ends", "requeued", "this life", "of another Slurm", "over", "requeued by its script"],
)
def test_job_that_was_requeued_is_told_from_one_that_is_over(place: Place, squeue, code, restart, line, queued) -> None:
    squeue.answers(line)
    kept = {"key": "42", "job": "42", "cluster": "rig", "restart": restart}
    ended = picture(**kept, phase="ended", ending=Ending(at=1.0, code=code))
    keeps(place, "picture", ended.to_json())
    assert look(place, "42", **squeue.environ) == ended.model_copy(update={"queued": queued})


def test_picture_of_another_eray_and_a_home_of_others_are_refused(place: Place) -> None:
    keeps(place, "picture", {"key": "42", "taken_at": 1.0})
    with pytest.raises(UsageError, match="is not one that eray reads"):
        look(place, "42")
    parent = Path(naming.user_directory(str(place.tmp), os.getuid()))
    parent.mkdir(mode=0o755)
    with pytest.raises(DirectoryError):
        look(place, "42")


@pytest.mark.parametrize("wanted", ["42", "rig-42", None], ids=str)
@pytest.mark.parametrize("phase", ["starting", "ended"])
def test_cluster_of_a_job_starts_where_its_head_says_so(
    phase: str, wanted: str | None, place: Place, head: Heads, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_starting, "AGAIN_S", 0.0)
    shown = picture(key="42", phase="starting", cluster="rig")
    if phase == "starting":
        runs(place, head(replace(STEP, key="42"), *[shown] * 20))
    else:
        keeps(place, "picture", picture(key="42", phase="ended", cluster="rig").to_json())
    site = place.site(**(JOB if wanted is None else {}), ERAY_CLUSTER_TIMEOUT_S="0.01")
    with pytest.raises(RayAttachError) as caught:
        find_started(site, wanted, lambda access: access.gcs_address)
    assert ("is starting" in str(caught.value)) == (phase == "starting")
    assert ("no cluster of job" in str(caught.value)) == (phase == "ended")
    place.published(replace(ACCESS, dashboard=None, restart=0))  # what an earlier `eray run` of the job left
    with pytest.raises(RayAttachError) as caught:
        dashboard_of(site, wanted)
    assert ("is starting" in str(caught.value)) == (phase == "starting")
    assert ("has no dashboard" in str(caught.value)) == (phase == "ended")
