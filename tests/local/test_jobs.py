"""Ray Jobs on a cluster that is up: by `eray submit` and by Ray's own command, in a shell that was told nothing."""

import json
import os
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

import pytest
from laptop import EXAMPLES, Laptop, await_text, until
from test_faults import step_of_one

from eray._core import naming
from eray._io import process
from eray._io.interfaces import local_addresses
from eray._io.secret import ensure_secret

pytestmark = [pytest.mark.ray]
RAY = Path(sys.executable).with_name("ray")
WHERE = "import os; print('at', os.environ['RAY_ADDRESS'].rpartition(':')[2], os.getcwd())"
STAYS = "import time; print('it runs'); time.sleep(300)"


@dataclass(frozen=True)
class Cluster:
    """A running ``eray up`` and what it told its user."""

    place: Laptop
    exports: dict[str, str]

    @property
    def key(self) -> str:
        return Path(self.exports["RAY_AUTH_TOKEN_PATH"]).parent.name

    @property
    def port(self) -> str:
        return self.exports["RAY_ADDRESS"].rpartition(":")[2]

    def jobs(self) -> dict[str, dict[str, str]]:
        """Return the cluster's Ray Jobs by id, as `eray jobs list` shows them."""
        listed = self.place.eray("jobs", "list", "--json", "--job", self.key).wait().check()
        return {job["id"]: job for job in json.loads(listed.stdout)}


def exports_of(printed: str) -> dict[str, str]:
    lines = [line.removeprefix("export ") for line in printed.splitlines() if line.startswith("export ")]
    return dict(line.split("=", 1) for line in lines)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A cluster in one shell; the tests are in others, which know nothing of it."""
    place = Laptop.make()
    try:
        up = place.eray("up")
        await_text(up, "export RAY_API_SERVER_ADDRESS=")
        yield Cluster(place, exports_of(up.output))
        up.signal(signal.SIGTERM)
        assert up.wait(15).returncode == 143
        until(lambda: not place.processes() or None, 5.0, lambda: f"the end of {place.processes()}")
    finally:
        place.clear()


def test_submit_passes_the_output_and_the_exit_code(cluster: Cluster) -> None:
    program = f"{WHERE}; print('to stderr', file=os.sys.stderr); raise SystemExit(int(os.sys.argv[1]))"
    runs = {code: cluster.place.eray("submit", "--", "python", "-c", program, str(code)) for code in (0, 7)}
    for code, running in runs.items():
        result = running.wait()
        assert result.returncode == code, result.output
        assert result.stdout == f"at {cluster.port} {cluster.place.root}/work\nto stderr\n"
        assert f" runs on the cluster {cluster.key}\n" in result.stderr


@pytest.mark.full
def test_submit_streams_and_a_driver_that_a_signal_ended_has_its_code(cluster: Cluster) -> None:
    program = "import os, time; print('pid', os.getpid()); time.sleep(300)"
    running = cluster.place.eray("submit", "--", "python", "-c", program)
    await_text(running, "pid ")
    pid = int(re.search(r"pid (\d+)", running.output)[1])
    os.kill(pid, signal.SIGKILL)
    result = running.wait()
    assert result.returncode == 137
    assert result.stdout == f"pid {pid}\n", "what came before the end is not printed again with the rest"
    assert result.stderr.endswith(" failed with exit code 137\n")


def test_submitted_driver_attaches_and_runs_tasks(cluster: Cluster) -> None:
    result = cluster.place.eray("submit", "--", "python", EXAMPLES / "ray_job.py").wait().check()
    assert re.search(rf"nodes of the cluster at \S+:{cluster.port}: 1", result.stdout)
    assert "a task ran on node 0, " in result.stdout


def test_no_wait_prints_the_id_alone_then_list_and_stop(cluster: Cluster) -> None:
    result = cluster.place.eray("submit", "--no-wait", "--", "python", "-c", STAYS).wait().check()
    job_id = result.stdout.strip()
    assert re.fullmatch(r"eray-[0-9a-f]+", job_id)
    assert result.stderr == ""
    listed = cluster.jobs()[job_id]
    assert listed["status"] in ("PENDING", "RUNNING")
    assert listed["command"].startswith("python -c ")
    stopped = cluster.place.eray("jobs", "stop", job_id).wait().check()
    assert stopped.stdout.split()[:2] == [job_id, "STOPPED"]
    assert cluster.jobs()[job_id]["status"] == "STOPPED"
    missing = cluster.place.eray("jobs", "stop", "eray-none").wait()
    assert (missing.returncode, missing.stdout) == (2, "")
    assert "has no Ray Job 'eray-none'; `eray jobs list` shows them" in missing.stderr


def test_signal_stops_the_job(cluster: Cluster) -> None:
    numbers = (signal.SIGINT, signal.SIGTERM)
    runs = {number: cluster.place.eray("submit", "--", "python", "-c", STAYS) for number in numbers}
    for number, running in runs.items():
        await_text(running, "it runs")
        running.signal(number)
    for number, running in runs.items():
        result = running.wait(20)
        assert result.returncode == 128 + number
        job_id = re.search(rf"eray: {number.name}: stopping Ray Job (\S+)\n", result.stderr)[1]
        assert cluster.jobs()[job_id]["status"] == "STOPPED"
    assert not any("it runs" in line for line in cluster.place.processes().values())


@pytest.mark.full
def test_stopped_job_is_143_for_who_follows_it(cluster: Cluster) -> None:
    running = cluster.place.eray("submit", "--", "python", "-c", STAYS)
    await_text(running, "it runs")
    job_id = re.search(r"Ray Job (\S+) runs on", running.output)[1]
    cluster.place.eray("jobs", "stop", job_id).wait().check()
    result = running.wait(20)
    assert result.returncode == 143
    assert f"eray: Ray Job {job_id} was stopped\n" in result.stderr


@pytest.mark.full
def test_reader_that_leaves_stops_the_job(cluster: Cluster) -> None:
    script = '"$@" | head -n 1; exit ${PIPESTATUS[0]}'
    program = "import time\nfor n in range(10000):\n  print('it ticks', n)\n  time.sleep(0.05)"
    words = ["submit", "--", "python", "-c", program]
    result = cluster.place.eray(*words, within=["bash", "-c", script, "bash"]).wait(30)
    assert (result.returncode, result.stdout) == (141, "it ticks 0\n")
    last = [job for job in cluster.jobs().values() if "it ticks" in job["command"]][-1]
    until(lambda: cluster.jobs()[last["id"]]["status"] == "STOPPED" or None, 10, "the job's end")


def test_plain_ray_job_submit_with_nothing_but_the_exports(cluster: Cluster) -> None:
    told = exports_of(cluster.place.eray("env").wait().check().stdout)
    assert told == cluster.exports
    assert "RAY_AUTH_TOKEN" not in told
    plain = [RAY, "job", "submit", "--", "python", "-c", WHERE]
    for running in [cluster.place.start(plain, **exports) for exports in (cluster.exports, told)]:
        assert f"at {cluster.port} " in running.wait().check().stdout


@pytest.mark.full
def test_working_dir_is_sent_whatever_cluster_the_environment_names(cluster: Cluster) -> None:
    directory = cluster.place.root / "work" / "sent"
    directory.mkdir()
    (directory / "driver.py").write_text("import os; print(sorted(os.listdir('.')))")
    elsewhere = {
        "RAY_ADDRESS": "192.0.2.1:1",
        "RAY_API_SERVER_ADDRESS": "http://192.0.2.1:2",
        "http_proxy": "http://h:1",
    }
    words = ["submit", "--working-dir", "sent", "--", "python", "driver.py"]
    result = cluster.place.eray(*words, **elsewhere).wait()
    assert (result.returncode, result.stdout) == (0, "['driver.py']\n"), result.output


@pytest.mark.full
def test_two_clusters_take_no_job_of_each_other(cluster: Cluster) -> None:
    place = cluster.place
    up = place.eray("up")
    await_text(up, "export RAY_API_SERVER_ADDRESS=")
    other = Cluster(place, exports_of(up.output))
    unclear = place.eray("submit", "--", "true").wait()
    assert unclear.returncode == 2
    assert re.search(r"several clusters run on this machine: local-\w+ \(`eray up`, for \d+ .*\), ", unclear.stderr)
    assert "choose one with `--job local-" in unclear.stderr
    before = set(other.jobs())
    program = ["--", "python", "-c", WHERE]
    pairs = ((cluster, other), (other, cluster))
    ours = [place.eray("submit", "--job", one.key, *program, **another.exports) for one, another in pairs]
    rays = [place.start([RAY, "job", "submit", *program], **one.exports) for one, _ in pairs]
    for (one, _), own, plain in zip(pairs, ours, rays, strict=True):
        assert own.wait().check().stdout == f"at {one.port} {place.root}/work\n"
        assert f"at {one.port} " in plain.wait().check().stdout
    assert len(set(other.jobs()) - before) == 2
    assert not set(other.jobs()) & set(cluster.jobs())
    following = place.eray("submit", "--job", other.key, "--", "python", "-c", STAYS)
    await_text(following, "it runs")
    up.signal(signal.SIGTERM)
    assert up.wait(15).returncode == 143
    lost = following.wait(30)
    assert lost.returncode == 4
    assert f"the cluster {other.key} is lost: Ray's dashboard at " in lost.stderr
    gone = place.eray("submit", "--job", other.key, "--", "true").wait()
    assert gone.returncode == 4
    assert f"on this machine runs {cluster.key} (`eray up`, for " in gone.stderr


@pytest.mark.full
def test_daemons_that_hang_hold_nobody_up(laptop: Laptop) -> None:
    up = laptop.eray("up")
    await_text(up, "export RAY_API_SERVER_ADDRESS=")
    words = ["submit", "--", "python", "-c"]
    ends = laptop.eray(*words, "import time; print('it runs'); time.sleep(3); print('it ends')")
    await_text(ends, "it runs")
    with stopped(laptop, "DashboardAgent"):
        result = ends.wait(40)
    assert result.returncode == 0, result.output
    assert "Ray does not send all of its output; the rest is in job-driver-eray-" in result.stderr
    stays = laptop.eray(*words, STAYS)
    await_text(stays, "it runs")
    with stopped(laptop, "dashboard/dashboard.py", "ray-dashboard-"):
        result = stays.wait(40)
        assert result.returncode == 4, result.output
        assert " did not answer within 15 s" in result.stderr
    up.signal(signal.SIGTERM)
    assert up.wait(15).returncode == 143


@contextmanager
def stopped(place: Laptop, *words: str) -> Iterator[None]:
    """Stop the processes whose command line has one of ``words``, as a machine out of memory does."""
    lives = [process.identity(pid) for pid, line in place.processes().items() if any(word in line for word in words)]
    assert lives
    for life in lives:
        process.kill(life, signal.SIGSTOP)
    try:
        yield
    finally:
        for life in lives:
            process.kill(life, signal.SIGCONT)


def reachable_interface() -> str:
    """Return an interface of this machine that others may reach."""
    found = (each for each in local_addresses() if not ip_address(each.address).is_loopback)
    return next(each.interface for each in found if ":" not in each.address)


@pytest.mark.full
def test_login_node_derives_the_token_and_tells_a_cluster_that_is_gone(laptop: Laptop) -> None:
    """A job's cluster, as a machine sees it that shares the home and nothing else."""
    home = laptop.root / "home" / ".eray"
    step = step_of_one(ERAY_INTERFACE=reachable_interface())
    job = step["SLURM_JOB_ID"]
    secret = naming.launch_secret(ensure_secret(str(home)), step["SLURM_CLUSTER_NAME"], job, 0)
    elsewhere = {"ERAY_TMPDIR": str(laptop.root / "tmp")}
    up = laptop.eray("up", **step, ERAY_SECRET=secret)  # as `eray up` in a shell of the job starts its step
    await_text(up, "export RAY_API_SERVER_ADDRESS=")

    on_a_node = exports_of(laptop.eray("env", **step).wait().check().stdout)
    assert on_a_node["RAY_AUTH_TOKEN_PATH"].endswith("/token")
    exports = exports_of(laptop.eray("env", "--job", job, **elsewhere).wait().check().stdout)
    assert exports["RAY_ADDRESS"] == on_a_node["RAY_ADDRESS"]
    assert exports["RAY_AUTH_TOKEN"] == Path(on_a_node["RAY_AUTH_TOKEN_PATH"]).read_text()
    submit = ["submit", "--job", job, "--", "python", "-c", "print('hello')"]
    own = laptop.eray(*submit, **elsewhere)
    plain = laptop.start([RAY, "job", "submit", "--", "python", "-c", WHERE], **elsewhere, **exports)
    assert own.wait().check().stdout == "hello\n"
    assert f"at {exports['RAY_ADDRESS'].rpartition(':')[2]} " in plain.wait().check().stdout
    assert [path for path in home.rglob("*") if path.is_file() and exports["RAY_AUTH_TOKEN"] in path.read_text()] == []

    (home / "secret").rename(home / "kept")
    result = laptop.eray(*submit, **elsewhere).wait()
    assert result.returncode == 3
    assert f"this is not the secret that the cluster of job {job} was started with" in result.stderr
    (home / "kept").rename(home / "secret")
    up.signal(signal.SIGTERM)
    assert up.wait(15).returncode == 143
    result = laptop.eray(*submit, **elsewhere).wait()
    assert result.returncode == 4
    assert f"the cluster of job {job} is gone: nothing answers at" in result.stderr
    (home / "secret").unlink()
    for path in (home / "jobs").rglob("*"):
        assert not path.is_file() or exports["RAY_AUTH_TOKEN"] not in path.read_text(errors="replace")
