"""SIGKILL of each kind of process: one message with the first cause, soon, and nothing left on any node."""

import re
import signal
import time

import pytest
from slurm_rig import Job, Rig
from victims import kill, processes_of, secrets_left, survivors, victim
from worlds import FAIL, WHO, expect_nothing_left, read_world

pytestmark = [pytest.mark.slurm, pytest.mark.ray, pytest.mark.jax]
NODES = ("node01", "node02")
WAYS = {"run": f"eray run -- python {FAIL} -1 wait", "srun": f"srun -n2 --ntasks-per-node=1 python {FAIL} -1 wait"}
SOON_S = 5.0
RARE = pytest.mark.full
LOST = r"node node02 \(process 1\) is lost: the other side closed it or died$"
HEAD_GONE = r"node node01: the head's supervisor is gone \(the other side closed it or died\); see "
OWN_GONE = r"process {index} leaves: node {node}: its supervisor is gone; see its last messages$"
KILLED = "without a word, so killed: out of memory\\?$"
IN_RUN = r"process {index} on {node} \(pid \d+\) was killed \(SIGKILL, 137\): out of memory, or"
IN_STEP = r"(process 0 on node01 \(pid \d+\) died$|node node01: the head's supervisor is gone)"


def start_world(rig: Rig, way: str, *options: str) -> Job:
    job = rig.sbatch(f"{WAYS[way]}; code=$?; echo code $code; exit $code", "-N2", *options)
    await_joined(rig, job, 2)
    return job


def await_joined(rig: Rig, job: Job, count: int) -> None:
    rig.wait_until(lambda: job.output.count("has joined") == count or job.ended, 60, "all to join")
    assert job.output.count("has joined") == count, job.output


def causes(output: str) -> list[str]:
    """Return what eray said, in order, without progress."""
    said = re.findall(r"^(?:\[\d+\] )?eray: (.*)$", output, re.M)
    progress = re.compile(r"waiting for|the logs of node|: [0-9,]+ of [0-9,]+(, |$)")
    return [line for line in said if not progress.search(line)]


def test_one_of_four_processes_killed_frees_all_nodes_and_is_named(rig: Rig) -> None:
    job = rig.sbatch(f"eray run --processes-per-node 2 -- python {FAIL} -1 wait; echo code $?", "-N2")
    await_joined(rig, job, 4)
    killed_at = kill(processes_of(rig, "node02", "process")[0])
    rig.wait_until(lambda: not survivors(rig, NODES), 10.0, "all to be gone")
    assert time.monotonic() - killed_at < 10.0
    job.wait(30)
    assert job.output.endswith("code 137\n"), job.output
    assert re.match(r"process [23] on node02 \(pid \d+\) was killed \(SIGKILL, 137\)", causes(job.output)[0]), (
        job.output
    )
    expect_nothing_left(rig)


@pytest.mark.parametrize(
    ("way", "kind", "node", "code", "cause"),
    [
        pytest.param("run", "process", "node01", 137, IN_RUN.format(index=0, node="node01"), marks=RARE),
        pytest.param("run", "supervisor", "node01", 137, HEAD_GONE, marks=RARE),
        ("run", "supervisor", "node02", 137, LOST),
        pytest.param("run", "raylet", "node01", 4, rf"raylet of node node01 ended, {KILLED}", marks=RARE),
        pytest.param("run", "raylet", "node02", 4, rf"raylet of node node02 ended, {KILLED}", marks=RARE),
        ("run", "gcs", "node01", 4, rf"gcs_server of node node01 ended, {KILLED}"),
        pytest.param(
            "run", "ray start", "node02", 4, rf"(raylet|ray start) of node node02 ended, {KILLED}", marks=RARE
        ),
        ("srun", "process", "node01", 137, IN_STEP),
        ("srun", "supervisor", "node01", 4, f"({HEAD_GONE}|{OWN_GONE.format(index=0, node='node01')})"),
        pytest.param(
            "srun", "supervisor", "node02", 4, f"({LOST}|{OWN_GONE.format(index=1, node='node02')})", marks=RARE
        ),
        pytest.param("srun", "raylet", "node02", 4, rf"raylet of node node02 ended, {KILLED}", marks=RARE),
        pytest.param("srun", "gcs", "node01", 4, rf"gcs_server of node node01 ended, {KILLED}", marks=RARE),
        pytest.param(
            "srun",
            "ray start",
            "node01",
            4,
            rf"(raylet|ray start|gcs_server) of node node01 ended, {KILLED}",
            marks=RARE,
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and " " not in value.replace("ray start", "") else "",
)
def test_killed(rig: Rig, way: str, kind: str, node: str, code: int, cause: str) -> None:
    job = start_world(rig, way)
    before = job.output
    killed = kill(victim(rig, node, kind))
    rig.wait_until(lambda: not survivors(rig, NODES), SOON_S, "all of it to be gone")
    assert f"code {code}\n" in job.wait(20).output, job.output
    assert time.monotonic() - killed < SOON_S + 2, "Slurm itself needs a moment to end the job"
    said = causes(job.output[len(before) :])
    # Each node writes to srun for itself: what another's process says of the cause may come before it.
    if way == "srun":
        said[0] = re.sub(r"^process \d leaves: (?!node node0\d: its supervisor)", "", said[0])
    assert re.match(cause, said[0]), job.output
    if way == "run":
        assert len(said) == 1, "one message"
    # Where the last task of a node is killed Slurm kills what is left there (FACTS S15): a directory without a secret.
    last_task = "supervisor" if way == "run" else "process"
    allowed = {node} if kind in (last_task, "supervisor") else set()
    if (way, kind, node) == ("srun", "process", "node01"):
        allowed = {
            *NODES
        }  # it was JAX's process 0: its client on node02 aborts, maybe before all is cleared (FACTS J7)
    assert {found[:6] for found in rig.leftover_directories()} <= allowed
    assert secrets_left(rig) == []


def test_raylet_that_aborts_is_explained_by_its_log(rig: Rig) -> None:
    job = start_world(rig, "run")
    kill(victim(rig, "node02", "raylet"), signal.SIGABRT)
    assert "code 4\n" in job.wait(20).output
    expect_nothing_left(rig)
    told = re.search(r"^eray: raylet of node node02 ended, raylet\.(err|out):\n(  .*\n)*?  .*SIGABRT", job.output, re.M)
    assert told, job.output
    for node in NODES:
        kept = rig.run(f"ls $HOME/.eray/jobs/rig-{job.id}/logs/*/{node}").check().stdout.split()
        assert "raylet.out" in kept, node
    tail = rig.run(["eray", "logs", "--job", job.id, "--tail", "40"]).check().stdout
    assert "SIGABRT" in tail, tail


def test_coordinator_that_is_killed_comes_back_in_a_step(rig: Rig) -> None:
    meeting = rig.share.out / "coordinator"
    meeting.mkdir()
    meeting.chmod(0o1777)
    job = rig.sbatch(f"srun -n2 --ntasks-per-node=1 python {WHO}", "-N2", env={"MEET": f"{meeting}:2"})
    rig.wait_until(lambda: any(meeting.iterdir()), 60, "the world to run")
    kill(victim(rig, "node01", "coordinator"))
    (meeting / "go on").touch()
    assert job.wait(40).state == "COMPLETED", job.output
    expect_nothing_left(rig)
    assert read_world(job.output).places == [("node01", 0), ("node02", 0)]
    assert causes(job.output) == []
