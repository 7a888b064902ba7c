"""Who gets in: without the token nobody, and no other user of the node to files, sockets or processes."""

import json
import os
import signal
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from doors import (
    GUARDED_GRPC,
    GUARDED_HTTP,
    WRONG,
    ask,
    call,
    holders,
    is_refused_to_other_user,
    listeners,
    other_user,
    sockets_of,
)
from laptop import Laptop, await_text, until

from eray._io.secret import ensure_secret

pytestmark = [pytest.mark.ray]
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")

PROGRAMS = Path(__file__).parent / "programs"
SECRET = os.urandom(32).hex()


@dataclass(frozen=True)
class Cluster:
    """A running ``eray up`` in a place like ``/tmp``, and what it told its user."""

    place: Laptop
    exports: dict[str, str]
    printed: str
    run_dir: Path

    @property
    def token(self) -> str:
        return (self.run_dir / "token").read_text()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A cluster with its dashboard and a secret in its environment, as talkative as it can be."""
    place = Laptop.make()
    place.root.chmod(0o1777)
    for name in ("home", "tmp"):
        (place.root / name).chmod(0o755)
    try:
        up = place.eray("up", ERAY_SECRET=SECRET, ERAY_LOG="debug")
        await_text(up, "export RAY_API_SERVER_ADDRESS=")
        lines = [line.removeprefix("export ") for line in up.output.splitlines() if line.startswith("export ")]
        yield Cluster(place, dict(line.split("=", 1) for line in lines), up.output, place.run_directory())
        up.signal(signal.SIGTERM)
        assert up.wait(15).returncode == 143
        until(lambda: not place.processes() or None, 5.0, lambda: f"the end of {place.processes()}")
        assert [*(place.root / "tmp").iterdir()] == []
    finally:
        place.clear()


INIT = """
import ray, sys
ray.init(sys.argv[1], namespace="eray")
print("in:", len(ray.nodes()))
"""
ASK_GCS = """
import sys
from ray._raylet import GcsClient
print("in:", len(GcsClient(address=sys.argv[1]).get_all_node_info(timeout=5)))
"""
SUBMIT = """
import sys
from ray.job_submission import JobSubmissionClient
print("in:", JobSubmissionClient(sys.argv[1]).submit_job(entrypoint="true"))
"""


def test_without_the_token_no_driver_node_or_job_gets_in(cluster: Cluster, tmp_path: Path) -> None:
    place, address = cluster.place, cluster.exports["RAY_ADDRESS"]
    wrong = tmp_path / "token"
    wrong.write_text("0" * 64)
    wrong.chmod(0o600)
    strangers: dict[str, dict[str, str]] = {
        "unset": {},
        "disabled": {"RAY_AUTH_MODE": "disabled"},
        "none": {"RAY_AUTH_MODE": "token"},
        "wrong": {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(wrong)},
    }
    before = {*place.processes()}, ask_gcs(cluster)
    ways = {
        "init": ["-c", INIT, address],
        "start": ["-m", "ray.scripts.scripts", "start", f"--address={address}", f"--temp-dir={place.root}/x"],
        "gcs": ["-c", ASK_GCS, address],
        "job": ["-c", SUBMIT, cluster.exports["RAY_API_SERVER_ADDRESS"]],
    }
    refused = {
        f"{way} {who}": place.python(*words, **env, RAY_NUM_REDIS_GET_RETRIES="1")  # else it knocks for 20 s
        for way, words in ways.items()
        for who, env in strangers.items()
        if who in ("disabled", "wrong") or way == "init"
    }
    for name, running in refused.items():
        result = running.wait(60)
        assert result.returncode != 0, f"{name}: {result.output}"
        assert "in:" not in result.stdout, name
        assert "authentication" in result.output.lower(), f"{name}: {result.output}"
    until(lambda: {*place.processes()} == before[0] or None, 2.0, lambda: f"only {before[0]} in {place.processes()}")
    assert ask_gcs(cluster) == before[1] == "in: 1\n"
    assert not (place.root / "x").exists()


def ask_gcs(cluster: Cluster) -> str:
    """Return how many nodes the cluster has or had, as its own user may ask."""
    result = cluster.place.python("-c", ASK_GCS, cluster.exports["RAY_ADDRESS"], **cluster.exports)
    return result.wait().check().stdout


def open_doors(place: Laptop) -> dict[tuple[str, int], str]:
    """Try all that is guarded on every port of its processes; return what each open HTTP port gives away."""
    found, pids = {}, place.processes()
    beacons = {port for path in place.root.rglob("beacon.json") for port in json.loads(path.read_text())["ports"]}
    for door in sorted(listeners(pids)):
        status, body = ask(door, "GET", "/api/version")
        if status == 0:
            for method in GUARDED_GRPC:
                answers = {call(door, method, token) for token in (None, WRONG["Authorization"])}
                # The beacon of a machine alone is on loopback, and hangs up on who does not speak its language.
                refused = {"UNAVAILABLE"} if door[1] in beacons else {"UNAUTHENTICATED", "UNIMPLEMENTED"}
                assert answers <= refused, f"{door} {method}: {answers}"
                assert door[1] not in beacons or door[0] == "127.0.0.1"
        elif status == 200:
            found[door] = body
        else:
            for method, path in GUARDED_HTTP:
                assert ask(door, method, path)[0] == 401, f"{door} {method} {path}"
                assert ask(door, method, path, WRONG)[0] == 403, f"{door} {method} {path}"
    return found


def test_every_port_asks_for_the_token_but_for_metrics_and_the_index(cluster: Cluster) -> None:
    found = open_doors(cluster.place)
    assert all(body.startswith("# HELP ") for body in found.values()), found
    assert len(found) == 2  # the node's, and the dashboard's
    assert 44227 not in {port for _, port in found}  # Ray's default, which two clusters on a node would both want
    assert not any(cluster.token in body or SECRET in body for body in found.values())
    host, port = cluster.exports["RAY_API_SERVER_ADDRESS"].removeprefix("http://").split(":")
    dashboard = host, int(port)
    assert dashboard in listeners(cluster.place.processes())
    assert ask(dashboard, "GET", "/")[0] == 200
    assert ask(dashboard, "GET", "/api/version", {"Authorization": f"Bearer {cluster.token}"})[0] == 200


def test_eray_run_listens_on_nothing_that_is_open(laptop: Laptop) -> None:
    """The token guards what its processes listen on, and they do not hold the secret."""
    end = laptop.root / "work" / "end"
    command = ["--", "python", PROGRAMS / "stay.py", end]
    running = laptop.eray("run", "-n", "2", *command, ERAY_SECRET=SECRET)
    await_text(running, "process 1 is in")
    pids = laptop.processes()
    assert open_doors(laptop) == {}
    assert len(listeners(pids)) > 4
    assert holders(SECRET, pids) == {running.process.pid}
    end.touch()
    running.wait().check()
    end.unlink()


WORKER = """
import os, ray
ray.init(namespace="eray")
env = ray.get(ray.remote(lambda: dict(os.environ)).remote())
print(sorted(name for name in env if "TOKEN" in name or "SECRET" in name))
"""


def test_token_and_secret_stand_where_they_must_and_nowhere_else(cluster: Cluster) -> None:
    place = cluster.place
    pids = place.processes()
    supervisor = place.pid_of("-m eray up")
    assert holders(cluster.token, pids) == set()
    assert holders(SECRET, pids) == {supervisor}
    assert holders("RAY_AUTH_TOKEN=", pids) == set()
    assert cluster.token not in cluster.printed
    assert SECRET not in cluster.printed
    files = [path for path in place.root.rglob("*") if path.is_file()]
    assert len(files) > 50
    holding = {path for path in files for text in (cluster.token, SECRET) if text.encode() in path.read_bytes()}
    assert holding == {cluster.run_dir / "token"}
    assert (cluster.run_dir / "token").readlink().is_relative_to(f"/proc/{supervisor}/fd")  # in memory, on no disk
    assert stat.S_IMODE((cluster.run_dir / "token").stat().st_mode) == 0o400
    assert place.python("-c", WORKER, **cluster.exports).wait().check().stdout == "['RAY_AUTH_TOKEN_PATH']\n"


@as_root
def test_other_user_reads_no_file_and_reaches_no_socket(cluster: Cluster) -> None:
    place, user_dir = cluster.place, cluster.run_dir.parent
    state_dir = place.root / "home" / ".eray"
    ensure_secret(str(state_dir))
    private = [user_dir, *user_dir.rglob("*"), state_dir, *state_dir.rglob("*")]
    private += [path for path in (place.root / "tmp").rglob("*") if path.is_dir() or path.is_socket()]
    sockets = {path.name for path in private if path.is_socket()}
    assert sockets >= {"sock", "raylet", "plasma_store", "dash_JobHead"}
    assert {path.name for path in private} >= {"secret", "token", "node.json", "coordinator.json", "gcs_server.out"}
    assert [path for path in private if not is_refused_to_other_user(path)] == []


@as_root
def test_other_user_sees_no_memory_environment_or_abstract_socket(cluster: Cluster) -> None:
    pids = cluster.place.processes()
    kept = [Path(f"/proc/{pid}/{name}") for pid in pids for name in ("environ", "mem", "fd")]
    assert [path for path in kept if not is_refused_to_other_user(path)] == []
    inodes = sockets_of(pids)
    rows = [line.split() for line in Path("/proc/net/unix").read_text().splitlines()[1:]]
    assert [row[7] for row in rows if row[6] in inodes and row[7:] and row[7].startswith("@")] == []
    maps = "".join(Path(f"/proc/{pid}/maps").read_text() for pid in pids if "raylet" in pids[pid])
    named = {line.split(maxsplit=5)[5] for line in maps.splitlines() if "/dev/shm/" in line}
    assert named  # the object store's memory: it has no name any more, or it lets nobody else in
    assert [name for name in named if not name.endswith(" (deleted)") and os.stat(name).st_mode & 0o077] == []


@as_root
@pytest.mark.parametrize("kind", ["directory", "file", "link to theirs", "link to ours", "dangling link"])
def test_squatted_run_directory_is_refused_and_left_alone(laptop: Laptop, kind: str) -> None:
    laptop.root.chmod(0o1777)
    place, ours, theirs = laptop.root / f"eray-{os.getuid()}", laptop.root / "ours", laptop.root / "theirs"
    ours.mkdir(mode=0o700)
    with other_user():
        theirs.mkdir(mode=0o700)
        if kind == "directory":
            place.mkdir(mode=0o777)
        elif kind == "file":
            place.touch()
        else:
            place.symlink_to({"link to theirs": theirs, "link to ours": ours}.get(kind, laptop.root / "none"))
    result = laptop.eray("run", "-n", "1", "--", "true").wait()
    assert result.returncode == 3, result.output
    found = {"directory": "belongs to uid 65534, this is uid 0", "file": "is no directory"}
    assert f"eray: {place}: {found.get(kind, 'is a symbolic link (of uid 65534)')}" in result.stderr
    assert "ERAY_TMPDIR" in result.stderr
    assert [*ours.iterdir(), *theirs.iterdir()] == []
    place.rmdir() if kind == "directory" else place.unlink()
    ours.rmdir()
    theirs.rmdir()
