"""Ray Jobs on a job of several nodes: from the login node, from its nodes, and when the job is over."""

import re

import pytest
from slurm_rig import Job, Rig
from worlds import expect_nothing_left

pytestmark = [pytest.mark.slurm, pytest.mark.ray]
DRIVER = "examples/ray_job.py"
RAY = "python -m ray.scripts.scripts"
UP = "eray up"


def start(rig: Rig, script: str = UP, *options: str) -> Job:
    """Submit a job whose cluster stays, and wait until it is up."""
    job = rig.sbatch(script, "-N2", *options)
    rig.wait_until(lambda: "export RAY_API_SERVER_ADDRESS=" in job.output or job.ended, 90, "the cluster")
    assert not job.ended, job.output
    return job


def end(rig: Rig, job: Job) -> None:
    job.cancel()
    job.wait(60)
    expect_nothing_left(rig)


def test_login_node_submits_to_the_cluster_of_a_job(rig: Rig) -> None:
    job = start(rig)
    result = rig.run(["eray", "submit", "--job", job.id, "--", "python", DRIVER]).check()
    assert re.search(r"nodes of the cluster at \S+: 2$", result.stdout, re.MULTILINE), result.stdout
    assert "a task ran on node 0, node01, " in result.stdout
    assert "a task ran on node 1, node02, " in result.stdout
    assert f"runs on the cluster of job {job.id}" in result.stderr
    failed = rig.run(["eray", "submit", "--job", job.id, "--", "sh", "-c", "exit 7"])
    assert failed.returncode == 7, failed.output
    shell = f'eval "$(eray env --job {job.id})"; exec {RAY} job submit -- python {DRIVER}'
    plain = rig.run(shell).check()
    assert "a task ran on node 1, node02, " in plain.stdout
    submitted = rig.run(["eray", "submit", "--job", job.id, "--no-wait", "--", "sleep", "300"]).check()
    stopped = rig.run(["eray", "jobs", "stop", "--job", job.id, submitted.stdout.strip()]).check()
    assert stopped.stdout.split()[1] == "STOPPED"
    end(rig, job)
    gone = rig.run(["eray", "submit", "--job", job.id, "--", "true"])
    assert gone.returncode == 4, gone.output
    assert f"the cluster of job {job.id} is gone: nothing answers at " in gone.stderr


@pytest.mark.full
def test_every_node_of_the_job_submits_without_being_told_where(rig: Rig) -> None:
    script = f"""
        exports=$(mktemp)
        eray up >$exports & up=$!
        until grep -q RAY_API_SERVER_ADDRESS $exports || ! kill -0 $up; do sleep 0.1; done
        eray submit -- python {DRIVER} || exit
        srun --overlap -N1 -n1 -w node02 eray submit -- sh -c 'echo from node02; exit 7'; echo "ended with $?"
        kill $up; wait $up
    """
    job = rig.sbatch(script, "-N2", "-n2").wait()
    expect_nothing_left(rig)
    assert "a task ran on node 1, node02, " in job.output
    assert "from node02\n" in job.output
    assert "ended with 7\n" in job.output


@pytest.mark.full
def test_jobs_of_two_clusters_on_the_same_nodes_stay_apart(rig: Rig) -> None:
    options = ["-w", "node01,node02", "-n2", "--ntasks-per-node=1", "-c2"]
    jobs = [start(rig, UP, *options) for _ in range(2)]
    for job in jobs:
        words = ["eray", "submit", "--job", job.id, "--", "sh", "-c", "echo job $SLURM_JOB_ID"]
        assert rig.run(words).check().stdout == f"job {job.id}\n"
    unclear = rig.run(["eray", "submit", "--", "true"])
    assert unclear.returncode == 4
    assert "no cluster of yours that takes Ray Jobs runs on this machine" in unclear.stderr
    for job in jobs:
        job.cancel()
    for job in jobs:
        job.wait(60)
    expect_nothing_left(rig)


@pytest.mark.full
def test_job_with_a_secret_of_its_own_is_reached_by_who_has_it(rig: Rig) -> None:
    secret = "f" * 64
    job = start(rig, f"export ERAY_SECRET={secret}\n{UP}")
    submit = ["eray", "submit", "--job", job.id, "--", "echo", "in"]
    refused = rig.run(submit)
    assert refused.returncode == 3, refused.output
    assert "set ERAY_SECRET here as it was set for the job" in refused.stderr
    assert rig.run(submit, env={"ERAY_SECRET": secret}).check().stdout == "in\n"
    end(rig, job)
