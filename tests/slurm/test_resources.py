"""What Ray gets is the step's share of a node, never the machine."""

import json
import re
import time
from typing import Any

import pytest
from slurm_rig import Rig
from victims import processes_of
from worlds import expect_nothing_left

pytestmark = [pytest.mark.slurm, pytest.mark.ray, pytest.mark.jax]
MEMORY_MB = 2000
OPTIONS = ["-N2", "-n2", "--ntasks-per-node=1", "-c3", f"--mem={MEMORY_MB}", "--gpus-per-node=2"]
PROGRAM = "programs/resources.py"


def resources(output: str) -> dict[str, dict[str, Any]]:
    """Return Ray's resources by node rank, without those that only name a node."""
    found = re.findall(r"resources (\{.*\})", output)
    assert len(found) == 1, output
    return {rank: {name: each[name] for name in each if ":" not in name} for rank, each in json.loads(found[0]).items()}


@pytest.mark.parametrize("way", ["eray run -- python", "srun python"])
def test_cpus_and_memory_of_the_step(rig: Rig, way: str) -> None:
    job = rig.sbatch(f"export JAX_PLATFORMS=cpu\n{way} {PROGRAM}", *OPTIONS).wait()
    expect_nothing_left(rig)
    assert job.state == "COMPLETED", job.output
    found = resources(job.output)
    assert sorted(found) == ["0", "1"]
    for each in found.values():
        assert each["CPU"] == 3
        assert "GPU" not in each, "the world's processes own them"
        assert each["memory"] + each["object_store_memory"] == MEMORY_MB * 2**20
        assert each["object_store_memory"] <= 0.3 * MEMORY_MB * 2**20


@pytest.mark.full
def test_eray_up_has_the_gpus_and_starts_no_workers_ahead(rig: Rig) -> None:
    script = f"""
        exports=$(mktemp)
        eray up >$exports & up=$!
        until grep -q RAY_ADDRESS $exports || ! kill -0 $up; do sleep 0.1; done
        export JAX_PLATFORMS=cpu
        unset SLURM_GPUS_PER_NODE
        srun --overlap --gres=none -N2 -n2 --ntasks-per-node=1 python {PROGRAM}
        kill $up; wait $up
    """
    job = rig.sbatch(script, *OPTIONS)
    rig.wait_until(lambda: "resources" in job.output or job.ended, 60, f"the figures; {job.output}")
    idle = {node: len(processes_of(rig, node, "idle worker")) for node in ("node01", "node02")}
    job.wait(30)
    expect_nothing_left(rig)
    assert {rank: each["GPU"] for rank, each in resources(job.output).items()} == {"0": 2, "1": 2}
    assert max(idle.values()) <= 3, "no more than it has CPUs"


@pytest.mark.parametrize(
    ("limit", "found"),
    [("-n 60", "ulimit -n may be 60; each of Ray's daemons"), ("-u 200", "ulimit -u leaves room for 1")],
)
def test_limits_too_small_for_ray_are_named(rig: Rig, limit: str, found: str) -> None:
    """Both of them would let Ray die without a word."""
    for node in ("node01", "node02"):  # the head, and another
        limited = f"[ $SLURMD_NODENAME = {node} ] && ulimit {limit}; exec python {PROGRAM}"
        began = time.monotonic()
        result = rig.srun(["-N2", "-n2", "bash", "-c", limited])
        assert time.monotonic() - began < 20, "the other node need not wait for its deadline"
        expect_nothing_left(rig)
        assert result.returncode == 3, result.output
        told = re.findall(rf"LimitError: node {node}: {found}", result.output)
        assert len(told) == 2, "both tasks raise it: " + result.output
