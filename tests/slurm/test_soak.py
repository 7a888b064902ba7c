"""Many jobs, killed at random moments in random ways: nothing is left, and no neighbour suffers."""

import os

import pytest
from slurm_rig import Rig
from soak import soak

pytestmark = [pytest.mark.slurm, pytest.mark.ray, pytest.mark.jax]
SEED = int(os.environ.get("ERAY_TEST_SEED", "1"))


@pytest.mark.timeout(1500)
@pytest.mark.full
@pytest.mark.parametrize("jobs", [2, 50])
def test_soak(rig: Rig, jobs: int, capsys: pytest.CaptureFixture[str]) -> None:
    def say(text: str) -> None:
        with capsys.disabled():
            print(f"\n{text}", end="", flush=True)

    soak(rig, SEED, jobs, say)
