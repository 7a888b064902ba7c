"""Slurm's warning in each of its ways: every process saves at the same step, and the job ends well."""

import re
import time

import pytest
from slurm_rig import Job, Rig
from worlds import expect_nothing_left

pytestmark = [pytest.mark.slurm, pytest.mark.ray]
SAVES = "python programs/saves.py"


def wait_for_world(rig: Rig, job: Job) -> None:
    rig.wait_until(lambda: job.output.count("has joined") == 2, 60, "both processes to join")


def expect_saved(job: Job, reason: str) -> None:
    """Both processes saved at one step, for one reason that matches."""
    found = re.findall(r"process (\d) saved at (\d+): (.*)$", job.output, re.M)
    assert sorted(index for index, _, _ in found) == ["0", "1"], job.output
    assert len({(step, why) for _, step, why in found}) == 1, job.output
    assert re.fullmatch(reason, found[0][2]), job.output
    assert job.output.count("this job is about to end") == 1, job.output
    assert "Traceback" not in job.output


@pytest.mark.parametrize("number", ["USR1", pytest.param("USR2", marks=pytest.mark.full)])
def test_signal_to_the_steps_of_run(rig: Rig, number: str) -> None:
    job = rig.sbatch(f"eray run -- {SAVES}", "-N2")
    wait_for_world(rig, job)
    job.cancel(f"--signal={number}")
    job.wait(60)
    expect_nothing_left(rig)
    assert (job.state, job.exit_code) == ("COMPLETED", 0), job.output
    expect_saved(job, rf"SIG{number} at node0[12]")


@pytest.mark.full
def test_signal_to_the_batch_shell_that_is_run(rig: Rig) -> None:
    job = rig.sbatch(f"exec eray run -- {SAVES}", "-N2")
    wait_for_world(rig, job)
    job.cancel("--batch", "--signal=USR1")
    job.wait(60)
    expect_nothing_left(rig)
    assert (job.state, job.exit_code) == ("COMPLETED", 0), job.output
    expect_saved(job, r"SIGUSR1 at node0[12]")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        pytest.param("", r"SIGUSR1 at process [01] on node0[12]", id="no handler"),
        pytest.param(
            "--own", r"the program's handler at process [01] on node0[12]", id="own handler", marks=pytest.mark.full
        ),
    ],
)
def test_signal_to_the_tasks_of_srun(rig: Rig, options: str, reason: str) -> None:
    job = rig.sbatch(f"srun -n2 --ntasks-per-node=1 {SAVES} {options}", "-N2")
    wait_for_world(rig, job)
    job.cancel("--signal=USR1")
    job.wait(60)
    expect_nothing_left(rig)
    assert (job.state, job.exit_code) == ("COMPLETED", 0), job.output
    expect_saved(job, reason)


@pytest.mark.full
def test_sigterm_of_a_preemption_warns_the_run(rig: Rig) -> None:
    job = rig.sbatch(f"ERAY_PREEMPTION_SIGNAL=TERM exec eray run -- {SAVES}", "-N2")
    wait_for_world(rig, job)
    job.cancel("--full", "--signal=TERM")  # to every step and the batch shell, as a preemption with GraceTime does
    job.wait(60)
    expect_nothing_left(rig)
    assert (job.state, job.exit_code) == ("COMPLETED", 0), job.output
    expect_saved(job, r"SIGTERM at node0[12]")


@pytest.mark.full
@pytest.mark.parametrize(
    "program", [f"eray run -- {SAVES}", f"srun -n2 --ntasks-per-node=1 {SAVES}"], ids=["run", "srun"]
)
def test_signal_before_the_time_limit(rig: Rig, program: str) -> None:
    job = rig.sbatch(program, "-N2", "--time=2", "--signal=USR1@60")  # Slurm may be up to 60 s early
    began = time.monotonic()
    job.wait(150)
    expect_nothing_left(rig)
    assert time.monotonic() - began < 110
    assert (job.state, job.exit_code) == ("COMPLETED", 0), job.output
    expect_saved(job, r"SIGUSR1 at .*node0[12]")


@pytest.mark.full
def test_requeued_job_knows_of_no_warning(rig: Rig) -> None:
    script = f"""
        eray run -- {SAVES} || exit
        [ "${{SLURM_RESTART_COUNT:-0}}" = 1 ] || scontrol requeue $SLURM_JOB_ID
        sleep 30
    """
    job = rig.sbatch(script, "-N2", "--requeue", "--open-mode=append")
    wait_for_world(rig, job)
    job.cancel("--signal=USR1")
    rig.wait_until(lambda: job.output.count("has joined") == 4, 90, "the processes of the second life to join")
    assert job.output.count("saved at") == 2
    job.cancel("--signal=USR1")
    rig.wait_until(lambda: job.output.count("saved at") == 4, 30, "the second life to save")
    assert job.output.count("this job is about to end") == 2
    job.cancel()
    expect_nothing_left(rig, within_s=5.0)
