"""A node that loses its power or its network: noticed in seconds, the others freed, and the job free to start anew."""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from slurm_rig import Rig
from test_deaths import NODES, causes, start_world
from victims import kill, secrets_left, survivors, victim
from worlds import LIVES, expect_nothing_left, read_world

pytestmark = [pytest.mark.slurm, pytest.mark.ray, pytest.mark.jax]
NOTICED_S = 8.0
"""Five seconds of silence (ERAY_NODE_TIMEOUT_S), and what the kernel's probes and two busy cores add."""
GONE_S = 5.0
RARE = pytest.mark.full


@contextmanager
def restored(rig: Rig, node: str) -> Iterator[None]:
    """Bring the node back afterwards, as the next test expects it."""
    try:
        yield
    finally:
        rig.clear()
        rig.restore(node)


@pytest.mark.parametrize(
    ("way", "how", "node"),
    [
        pytest.param("run", "kill-node", "node02", marks=RARE),
        ("srun", "kill-node", "node01"),
        pytest.param("run", "unplug-node", "node02", marks=RARE),
        pytest.param("run", "kill-node", "node01", marks=RARE),
        pytest.param("srun", "kill-node", "node02", marks=RARE),
        pytest.param("srun", "unplug-node", "node01", marks=RARE),
    ],
)
def test_lost_node_frees_the_others(rig: Rig, way: str, how: str, node: str) -> None:
    alive = NODES if how == "unplug-node" else tuple(set(NODES) - {node})
    with restored(rig, node):
        job = start_world(rig, way, "--no-requeue")
        before, began = job.output, time.monotonic()
        rig.control(how, node)
        rig.wait_until(lambda: not survivors(rig, alive), NOTICED_S + GONE_S, "the others to be gone")
        if how == "unplug-node" or node != "node01":  # else srun, through which all output comes, is lost as well
            said = causes(job.output[len(before) :])
            reason = "its node does not answer: no power, or no network\\?"
            assert re.match(rf"node node02 \(process 1\) is lost: {reason}$", said[0]), job.output
        job.wait(90)
        assert time.monotonic() - began < 90
        assert job.state == "NODE_FAIL"
        for other in alive:
            assert not rig.exec(other, "ls -d /tmp/eray-*/* 2>/dev/null").stdout, other
    assert rig.leftovers() == []


@pytest.mark.full
def test_requeued_job_starts_clean_over_the_files_of_its_first_life(rig: Rig) -> None:
    job = rig.sbatch(LIVES, "-N2", "-w", "node01,node02", "--requeue", "--open-mode=append")
    rig.wait_until(lambda: job.output.count("has joined") == 2, 60, "the first life to run")
    kill(victim(rig, "node02", "supervisor"))
    rig.wait_until(lambda: "first life 137" in job.output, 15, "the first life to end")
    assert rig.leftover_directories() == [f"node02: /tmp/eray-{uid(rig)}/{job.id}"], "Slurm killed the last task there"
    assert secrets_left(rig) == []
    rig.run(["scontrol", "requeue", job.id]).check()
    assert job.wait(90).state == "COMPLETED", job.output
    expect_nothing_left(rig)
    assert "second life 0\n" in job.output
    world = read_world(job.output)
    assert world.places == [("node01", 0), ("node02", 0)]
    assert rig.run(f"ls $HOME/.eray/jobs/rig-{job.id}/logs").check().stdout.split() == [f"{job.id}r{n}" for n in (0, 1)]


@RARE
def test_lost_node_has_its_job_requeued_elsewhere(rig: Rig) -> None:
    with restored(rig, "node02"):
        job = rig.sbatch(LIVES, "-N2", "--requeue", "--open-mode=append")  # Slurm takes the first two
        rig.wait_until(lambda: job.output.count("has joined") == 2, 60, "the first life to run")
        rig.control("kill-node", "node02")
        rig.wait_until(lambda: "second life" in job.output, 120, "the second life to end")
        job.wait(30)
        assert "second life 0\n" in job.output, job.output
        assert read_world(job.output).places == [("node01", 0), ("node03", 0)]
    assert rig.leftovers() == []


def uid(rig: Rig) -> str:
    return rig.run(["id", "-u"]).check().stdout.strip()
