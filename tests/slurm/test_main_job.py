"""The main job on a real Slurm: every way in ends with the right plan, exit 0, and nothing left."""

import pytest
from slurm_rig import Rig

pytestmark = [pytest.mark.slurm, pytest.mark.ray, pytest.mark.jax]


def test_srun_tasks_two_nodes_two_tasks_each(rig: Rig) -> None:
    result = rig.srun(["-N2", "--ntasks-per-node=2", "python", "examples/hello_jax.py"])
    print(result.output)
    assert result.returncode == 0, result.output
    for index in range(4):
        assert f"process {index} of 4 on node{index // 2 + 1:02}" in result.stdout
    assert "all-gather over 4 processes is right" in result.stdout
    rig.wait_until(lambda: not rig.leftovers(), 3, "nothing of eray or Ray to be left")


def test_sbatch_eray_run(rig: Rig) -> None:
    job = rig.sbatch(
        "eray run --processes-per-node 2 -- python examples/hello_jax.py", "-N2", "--ntasks-per-node=1"
    ).wait()
    print(job.output)
    assert job.exit_code == 0, job.output
    assert "all-gather over 4 processes is right" in job.output
    rig.wait_until(lambda: not rig.leftovers(), 3, "nothing of eray or Ray to be left")
