"""Launched worlds on a Ray that eray did not start: who gets which GPU, and what happens when a second node is lost.

The GPUs are Ray's word alone, which JAX is told to leave.
"""

import os
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from laptop import PLAIN_RAY, Laptop, await_text, result_of, until

pytestmark = [pytest.mark.ray, pytest.mark.jax]

PROGRAM = Path(__file__).parent / "programs" / "launches.py"
START = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", "--num-cpus=1"]
IMPATIENT = {
    "RAY_health_check_initial_delay_ms": "1000",
    "RAY_health_check_period_ms": "300",
    "RAY_health_check_timeout_ms": "1000",
    "RAY_health_check_failure_threshold": "3",
    "RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S": "0",
}


@pytest.fixture(scope="module")
def gpu_ray() -> Iterator[str]:
    """The address of a Ray of one node with two GPUs."""
    here = Laptop.make()
    try:
        temp = here.root / "r"
        head = [*START, "--head", "--port=0", f"--temp-dir={temp}", "--include-dashboard=false", "--num-gpus=2"]
        running = here.start(head, **PLAIN_RAY, **IMPATIENT)
        await_text(running, "block forever")
        yield (temp / "ray_current_cluster").read_text().strip()
        running.signal(signal.SIGTERM)
        running.wait(15)
        until(lambda: not here.processes() or None, 10.0, lambda: f"the end of {here.processes()}")
    finally:
        here.clear()


def test_processes_share_the_gpus_by_index(laptop: Laptop, gpu_ray: str) -> None:
    result = laptop.python(PROGRAM, "gpus", **PLAIN_RAY, RAY_ADDRESS=gpu_ray).wait(60).check()
    assert result_of(result) == [
        {"index": index, "node_rank": 0, "visible": str(index), "ids": [0], "rule": "own"} for index in range(2)
    ]


@pytest.mark.full  # and in CI on the nodes of a Slurm
def test_world_goes_on_without_a_lost_node(laptop: Laptop, gpu_ray: str) -> None:
    second = laptop.start(
        [*START, f"--address={gpu_ray}", "--num-gpus=0", "--node-name=second"], **PLAIN_RAY, **IMPATIENT
    )
    await_text(second, "block forever")
    driver = laptop.python(PROGRAM, "loses_a_node", **PLAIN_RAY, RAY_ADDRESS=gpu_ray)
    files = [laptop.root / "work" / f"pid.{index}" for index in range(2)]
    until(lambda: all(file.exists() for file in files) or None, 60, lambda: f"both processes:\n{driver.output}")
    os.kill(second.process.pid, signal.SIGKILL)
    result = driver.wait(90).check()
    assert result_of(result) == [[2, 0, 1, 0]]
    assert re.search(r"started again as generation 2 on \S+, restarts left: 0; process 1 on second", result.stderr)
    for file in files:
        file.unlink()
