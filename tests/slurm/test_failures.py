"""What happens to the others when one process of a world fails: the first cause named, soon, and nothing left."""

import re
import time

import pytest
from slurm_rig import Rig
from worlds import FAIL, expect_nothing_left, seconds_since_failure

pytestmark = [pytest.mark.slurm, pytest.mark.ray, pytest.mark.jax]


@pytest.mark.full
def test_srun_task_that_never_connects_is_named_by_all_others(rig: Rig) -> None:
    started = rig.start(["srun", "-N2", "-n3", "python", FAIL, "2", "absent"], env={"ERAY_JOIN_TIMEOUT_S": "12"})
    awaited = r"^eray: world 'step-0': waiting for process 2 \(node02\) to join, \d+ s$"
    rig.wait_until(lambda: re.search(awaited, started.output, re.M), 40, "a line that says who is awaited")
    # Who hears of it first raises the error; the other one is told by the cluster.
    timed_out = (
        r"^(?:eray\.errors\.JoinTimeoutError|eray: this process leaves): world 'step-0': process 2 \(node02\) did"
    )
    rig.wait_until(lambda: len(re.findall(timed_out, started.output, re.M)) == 2, 20, "both others to name it")
    # The task that sleeps on is no process of eray's: Slurm waits for it, or ends it by --kill-on-bad-exit.
    rig.wait_until(lambda: started.output.count("Exited with exit code 5") >= 1, 5, "the others' exit code")
    started.kill()
    expect_nothing_left(rig, within_s=3)


LOST = r"node node02 \(process 1\) is lost:.*"  # Slurm kills the supervisor after the node's last task: it may be mute


@pytest.mark.parametrize(
    ("how", "cause"),
    [
        pytest.param("killed", rf"(process 1 on node02 \(pid \d+\) died|{LOST})$", id="joined"),
        pytest.param(
            "killed-joining",
            rf"(process 1 on node02 \(pid \d+\) died before it joined|{LOST})$",
            id="joining",
            marks=pytest.mark.full,
        ),
    ],
)
def test_srun_task_killed_ends_the_others_with_the_cause(rig: Rig, how: str, cause: str) -> None:
    result = rig.srun(["-N2", "-n2", "--ntasks-per-node=1", "python", FAIL, "1", how])
    assert seconds_since_failure(result.output) < 5
    assert rig.leftover_processes() == []
    assert {found[:6] for found in rig.leftover_directories()} <= {"node02"}, "Slurm killed all with its last task"
    assert result.returncode == 137, result.output
    assert re.search(f"^eray: {cause}", result.output, re.M), result.output
    assert re.search("node01: task 0: Exited with exit code [45]$", result.output, re.M)


def test_srun_task_raises_ends_the_others_with_the_cause(rig: Rig) -> None:
    result = rig.srun(["-N2", "-n3", "python", FAIL, "2", "raise"])
    assert seconds_since_failure(result.output) < 5
    expect_nothing_left(rig)
    assert result.returncode == 5, result.output
    cause = r"^eray: .*process 2 on node02: raised ValueError: no such layer \(pid \d+\)$"
    assert re.search(cause, result.output, re.M), result.output
    assert "Traceback (most recent call last)" in result.output
    assert "node02: task 2: Exited with exit code 1" in result.output


def test_run_process_ends_with_7_over_two_nodes(rig: Rig) -> None:
    started = time.monotonic()
    job = rig.sbatch(f"eray run --processes-per-node 2 -- python {FAIL} 2 code; echo code $?", "-N2").wait()
    assert time.monotonic() - started < 60
    assert seconds_since_failure(job.output) < 10
    expect_nothing_left(rig)
    assert "code 7\n" in job.output
    assert re.search(r"^eray: process 2 on node02 \(pid \d+\) ended with code 7; its last lines:$", job.output, re.M)
    assert job.output.count("the last words of the program") == 2


def test_run_process_killed_over_two_nodes_ends_with_137(rig: Rig) -> None:
    job = rig.sbatch(f"eray run -- python {FAIL} 1 killed", "-N2").wait()
    assert seconds_since_failure(job.output) < 10
    expect_nothing_left(rig)
    assert (job.state, job.exit_code) == ("FAILED", 137)
    assert re.search(r"^eray: process 1 on node02 \(pid \d+\) was killed \(SIGKILL, 137\)", job.output, re.M)


def test_second_run_in_the_same_job_is_refused_and_harmless(rig: Rig) -> None:
    script = f"""
        log=$(mktemp)
        eray run -- python {FAIL} -1 wait >$log 2>&1 & first=$!
        until [ "$(grep -c "has joined" $log)" = 2 ] || ! kill -0 $first; do sleep 0.1; done
        eray run -- true; echo second $?
        kill $first; wait $first; echo first $?
    """
    job = rig.sbatch(script, "-N2").wait()
    expect_nothing_left(rig)
    assert "second 4\n" in job.output
    assert "first 143\n" in job.output
    told = re.findall(
        rf"^eray: job {job.id} has a cluster already: `eray run -n 2 -- python .*` runs for ", job.output, re.M
    )
    assert len(told) == 1, job.output
