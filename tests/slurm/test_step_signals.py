"""Signals end everything within Slurm's KillWait (5 s on the rig), with the exit code that a shell expects."""

import re
import signal
import time

import pytest
from commands import Running
from slurm_rig import Job, Rig
from worlds import FAIL, expect_nothing_left

pytestmark = [pytest.mark.slurm, pytest.mark.ray, pytest.mark.jax]
KILL_WAIT_S = 5.0
WAIT = f"python {FAIL} -1 wait"


def wait_for_world(rig: Rig, started: Running | Job) -> None:
    rig.wait_until(lambda: started.output.count("has joined") == 2, 40, "both processes to join")


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), pytest.param(signal.SIGTERM, 143, marks=pytest.mark.full)]
)
def test_salloc_shell_signal_to_run(rig: Rig, number: signal.Signals, code: int) -> None:
    # A shell starts what is in the background with SIGINT ignored; one at a prompt, or with job control, does not.
    started = rig.start(["salloc", "-N2", "bash", "-c", f"set -m; eray run -- {WAIT} & echo pid $!; wait $!; exit $?"])
    wait_for_world(rig, started)
    pid = int(re.findall(r"^pid (\d+)$", started.output, re.M)[0])
    sent = time.monotonic()
    rig.run(["kill", f"-{number.name}", str(pid)]).check()
    result = started.wait(20)
    assert time.monotonic() - sent < KILL_WAIT_S, result.output
    expect_nothing_left(rig)
    assert result.returncode == code, result.output
    assert "Killed" not in result.output
    assert "Traceback" not in result.output


def test_scancel_batch_job_of_run(rig: Rig) -> None:
    job = rig.sbatch(f"eray run -- {WAIT}", "-N2")
    wait_for_world(rig, job)
    job.cancel()
    expect_nothing_left(rig, within_s=KILL_WAIT_S)
    assert job.wait(20).state == "CANCELLED"
    assert "Traceback" not in job.output


@pytest.mark.full
def test_scancel_step_of_run(rig: Rig) -> None:
    job = rig.sbatch(f"eray run -- {WAIT}; echo code $?", "-N2")
    wait_for_world(rig, job)
    rig.run(["scancel", f"{job.id}.0"]).check()
    rig.wait_until(lambda: not rig.leftover_processes(), KILL_WAIT_S, "all to be down")
    assert "code 137\n" in job.wait(20).output  # Slurm kills a cancelled step at once


def test_scancel_job_of_srun_tasks(rig: Rig) -> None:
    job = rig.sbatch(f"srun -n2 {WAIT}", "-N2")
    wait_for_world(rig, job)
    job.cancel()
    rig.wait_until(lambda: not rig.leftover_processes(), KILL_WAIT_S, "all to be down")
    assert job.wait(20).state == "CANCELLED"


@pytest.mark.full
def test_time_limit_of_run(rig: Rig) -> None:
    job = rig.sbatch(f"eray run -- {WAIT}", "-N2", "--time=1")
    wait_for_world(rig, job)
    job.wait(150)
    expect_nothing_left(rig)
    assert job.state == "TIMEOUT"
    assert "Traceback" not in job.output
