"""`eray run --max-restarts` on a real Slurm: worlds that go on after a death, on the nodes that are left."""

import re
import time

import pytest
from slurm_rig import Rig
from test_lost_nodes import restored
from victims import kill, processes_of, survivors, victim
from worlds import expect_nothing_left

pytestmark = [pytest.mark.slurm, pytest.mark.ray, pytest.mark.jax]
STEPS = 40
RARE = pytest.mark.full


def elastic(*options: str, run: str = "--max-restarts 2", step_s: float = 0.1) -> str:
    """Return a script that trains with checkpoints in a directory of the job's own."""
    train = f"python examples/elastic_train.py --steps {STEPS} --seconds-per-step {step_s} {' '.join(options)}"
    return f"eray run {run} -- {train} --directory $HOME/elastic-$SLURM_JOB_ID; code=$?; echo code $code; exit $code"


def losses(output: str) -> dict[int, float]:
    """Return the last loss that process 0 printed for each step."""
    return {int(step): float(loss) for step, loss in re.findall(r"\[0\] step (\d+) loss ([0-9.]+)", output)}


def require_trained(output: str, generation: int) -> None:
    """Fail unless the training came to its last step, each step once in the end, with a loss that falls."""
    assert f"done: step {STEPS}," in output, output
    assert f"generation {generation}\n" in output, output
    found = losses(output)
    assert sorted(found) == list(range(1, STEPS + 1)), output
    in_order = [found[step] for step in sorted(found)]
    assert in_order == sorted(in_order, reverse=True), output


def test_world_goes_on_without_a_node_that_lost_its_power(rig: Rig) -> None:
    with restored(rig, "node03"):
        job = rig.sbatch(elastic(), "-N3", "--no-kill", "--no-requeue")
        rig.wait_until(lambda: "step 20 " in job.output or job.ended, 90, "step 20")
        rig.control("kill-node", "node03")
        job.wait(120)
        print(job.output)
        assert job.output.endswith("code 0\n"), job.output
        require_trained(job.output, 2)
        assert re.search(r"^eray: node node03 \(process 2\) is lost: its node does not answer", job.output, re.M)
        assert re.search(r"generation 2: 2 processes on 2 of 3 nodes, without node03; restart 1 of 2", job.output)
        # The checkpoint of step 20 may have been on its way still.
        assert re.search(r"generation 2 starts at step (15|20) with 2 processes", job.output), job.output
    assert rig.leftovers() == []


@pytest.mark.full
def test_raylet_that_dies_is_started_again_with_the_world(rig: Rig) -> None:
    job = rig.sbatch(elastic(), "-N2", "--no-kill", "--no-requeue")
    rig.wait_until(lambda: "step 10 " in job.output or job.ended, 90, "step 10")
    kill(victim(rig, "node02", "raylet"))
    job.wait(90)
    print(job.output)
    expect_nothing_left(rig)
    assert job.output.endswith("code 0\n"), job.output
    require_trained(job.output, 2)
    assert re.search(r"^eray: raylet of node node02 ended, ", job.output, re.M)
    assert "generation 2: 2 processes on 2 of 2 nodes; restart 1 of 2" in job.output


@RARE
def test_node_that_comes_back_takes_part_in_the_next_generation(rig: Rig) -> None:
    with restored(rig, "node03"):
        job = rig.sbatch(elastic(step_s=0.5), "-N3", "--no-kill", "--no-requeue")
        rig.wait_until(lambda: "step 5 " in job.output or job.ended, 90, "step 5")
        rig.control("unplug-node", "node03")
        rig.wait_until(lambda: "generation 2 starts" in job.output or job.ended, 30, "generation 2")
        rig.control("restore-node", "node03")
        rig.wait_until(lambda: len(processes_of(rig, "node03", "raylet")) == 1, 30, "Ray to be back on node03")
        rig.wait_until(lambda: "step 15 " in job.output or job.ended, 30, "step 15")
        kill(processes_of(rig, "node01", "elastic")[0])
        job.wait(90)
        print(job.output)
        assert job.output.endswith("code 0\n"), job.output
        require_trained(job.output, 3)
        assert "generation 3: 3 processes on 3 of 3 nodes; restart 2 of 2" in job.output
    assert rig.leftovers() == []


@RARE
def test_too_few_nodes_are_awaited_and_then_given_up(rig: Rig) -> None:
    with restored(rig, "node03"):
        script = "export ERAY_CLUSTER_TIMEOUT_S=20; " + elastic(run="--max-restarts 2 --min-nodes 3")
        job = rig.sbatch(script, "-N3", "--no-kill", "--no-requeue")
        rig.wait_until(lambda: "step 5 " in job.output or job.ended, 90, "step 5")
        rig.control("kill-node", "node03")
        job.wait(120)
        print(job.output)
        assert job.output.endswith("code 4\n"), job.output
        assert "eray: 2 of the 3 nodes that the world needs are left; waiting for more\n" in job.output
        assert "is not started again: 2 of the 3 nodes that it needs are left\n" in job.output
    assert rig.leftovers() == []


@pytest.mark.full
def test_lost_head_ends_a_run_from_a_login_shell_with_code_4(rig: Rig) -> None:
    with restored(rig, "node01"):
        command = ["salloc", "-N2", "-w", "node01,node02", "--no-kill", "bash", "-c", elastic(run="")]
        running = rig.start(command)
        rig.wait_until(lambda: "step 5 " in running.output or running.process.poll() is not None, 90, "step 5")
        began = time.monotonic()
        rig.control("kill-node", "node01")
        rig.wait_until(lambda: not survivors(rig, ("node02",)), 12, "node02 to be free")
        freed = time.monotonic() - began
        result = running.wait(90)
        print(freed, time.monotonic() - began, result.stdout, result.stderr)
        assert result.returncode == 4, result.stdout + result.stderr
        assert re.search(r"^eray: node node01: the head's supervisor is gone", result.stderr, re.M)
    assert rig.leftovers() == []


@RARE
def test_eray_up_goes_on_without_a_node(rig: Rig) -> None:
    script = """
    eray up & up=$!
    trap 'kill $up; wait $up; echo code $?' EXIT
    sleep infinity & wait $!
    """
    with restored(rig, "node02"):
        job = rig.sbatch(f"#!/bin/bash\n{script}", "-N3", "--no-kill", "--no-requeue")
        rig.wait_until(lambda: "export RAY_ADDRESS" in job.output or job.ended, 60, "the cluster")
        kill(victim(rig, "node03", "raylet"))
        rig.wait_until(lambda: "raylet of node node03 ended" in job.output, 10, "the raylet's end")
        rig.wait_until(lambda: len(processes_of(rig, "node03", "raylet")) == 1, 30, "Ray to be back on node03")
        rig.control("kill-node", "node02")
        rig.wait_until(lambda: "the cluster goes on without it" in job.output, 12, "the loss of node02")
        assert re.search(r"^eray: node node02 is lost: its node does not answer", job.output, re.M), job.output
        alive = [len(processes_of(rig, node, "raylet")) for node in ("node01", "node03")]
        job.cancel("--signal=TERM", "--batch")
        job.wait(60)
        print(job.output)
        assert alive == [1, 1]
        assert "code 143" in job.output
    assert rig.leftovers() == []
