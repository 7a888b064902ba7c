"""`eray.launch` over the nodes of `eray up`, from the batch script and as a Ray Job; a node is lost under it."""

import time

import pytest
from slurm_rig import Rig
from test_lost_nodes import restored

pytestmark = [pytest.mark.slurm, pytest.mark.ray, pytest.mark.jax]
DRIVERS = {"script": "python programs/launches.py", "job": "eray submit -- python programs/launches.py"}
NOTICED_S = 12.0
"""Five seconds of silence, and what the kernel's probes and two busy cores add."""


@pytest.mark.full
@pytest.mark.parametrize("way", ["script", "job"])
def test_launched_world_goes_on_without_a_node(rig: Rig, way: str) -> None:
    script = f"""
        export RAY_DEDUP_LOGS=0 PYTHONUNBUFFERED=1  # a Ray Job has them from `eray up`
        exports=$(mktemp)
        eray up >$exports & up=$!
        until grep -q RAY_ADDRESS $exports || ! kill -0 $up; do sleep 0.1; done
        {DRIVERS[way]}; echo code $?
        kill $up; wait $up; echo up $?
    """
    with restored(rig, "node03"):
        job = rig.sbatch(script, "-N3", "--no-kill", "--no-requeue")
        rig.wait_until(lambda: job.output.count("waits on") == 3 or job.ended, 90, "all processes to wait")
        began = time.monotonic()
        rig.control("kill-node", "node03")
        rig.wait_until(lambda: "is started again as generation 2" in job.output or job.ended, NOTICED_S, "generation 2")
        noticed = time.monotonic() - began
        job.wait(90)
        print(noticed, job.output)
        assert "results [(2, 0, 2, 'node01'), (2, 1, 2, 'node02')]\ncode 0\n" in job.output, job.output
        assert "is started again as generation 2 on node01, node02, restarts left: 0; " in job.output
        assert "up 143\n" in job.output
    assert rig.leftovers() == []
