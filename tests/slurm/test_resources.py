"""What Ray gets is the step's share of a node, never the machine."""

import json
import re
from typing import Any

import pytest
from slurm_rig import Rig
from victims import processes_of
from worlds import FAIL, expect_nothing_left

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


def test_eray_up_has_the_gpus_and_starts_no_workers_ahead(rig: Rig) -> None:
    script = f"""
        exports=$(mktemp)
        eray up >$exports & up=$!
        until grep -q RAY_ADDRESS $exports || ! kill -0 $up; do sleep 0.1; done
        export JAX_PLATFORMS=cpu
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


def test_limit_of_open_files_is_raised_or_named(rig: Rig) -> None:
    script = f"ulimit -Hn 60; ulimit -Sn 60; eray run -- python {FAIL} -1 wait; echo code $?"
    job = rig.sbatch(script, "-N1").wait()
    expect_nothing_left(rig)
    assert re.search(r"code [34]\n", job.output), job.output
    assert "open files" in job.output
