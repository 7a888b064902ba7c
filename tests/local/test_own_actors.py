"""Worlds whose processes are the user's own actors, or Ray Train's workers, on a Ray that eray did not start."""

import shutil
from pathlib import Path

import pytest
from laptop import PLAIN_RAY, Laptop, result_of

pytestmark = [pytest.mark.ray, pytest.mark.jax]

PROMPT = {"RAY_TRAIN_HEALTH_CHECK_INTERVAL_S": "0.2", "RAY_TRAIN_ENABLE_PREEMPTION_WATCHER": "0"}
PROGRAMS = Path(__file__).parent / "programs"


@pytest.mark.parametrize("state", ["busy", "idle"])
def test_death_of_an_actor_is_known_and_heard_within_5_s(laptop: Laptop, plain_ray: str, state: str) -> None:
    program = laptop.python(PROGRAMS / "watched_actors.py", state, **PLAIN_RAY, RAY_ADDRESS=plain_ray)
    found = result_of(program.wait(60).check())
    assert found["failure"].startswith("process 1 on ")
    assert f"its actor's process (pid {found['pid']}) is gone" in found["failure"]
    assert found["known_s"] < 5
    assert found["heard_s"] < 5


@pytest.mark.full
def test_ray_train_workers_are_the_processes_of_a_world(laptop: Laptop, plain_ray: str) -> None:
    storage = laptop.root / "work" / "train"
    program = laptop.python(
        PROGRAMS / "ray_train.py", **PLAIN_RAY, RAY_ADDRESS=plain_ray, STORAGE=str(storage), **PROMPT
    )
    gathered = {"gathered": [10, 11], "count": 2}
    assert result_of(program.wait(90).check()) == ["closed", gathered, gathered]
    shutil.rmtree(storage)  # the user's, not eray's
