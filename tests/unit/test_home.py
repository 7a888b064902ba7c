import os
from pathlib import Path

import pytest
from filelock import FileLock

from eray._ray.home import sweep


@pytest.fixture
def left(tmp_path: Path) -> Path:
    """A run directory that a killed supervisor left two minutes ago."""
    directory = tmp_path / "12.0"
    directory.mkdir(mode=0o700)
    (directory / "token").write_text("secret")
    (directory / "node.lock").touch()
    age(directory)
    return directory


def age(directory: Path, seconds: float = 120.0) -> None:
    then = directory.stat().st_mtime - seconds
    os.utime(directory, (then, then))


def test_sweep_removes_what_a_killed_supervisor_left(left):
    sweep(str(left.parent))
    assert not left.exists()


@pytest.mark.parametrize("jump_s", [5 * 3600.0, -5 * 3600.0])
def test_sweep_removes_what_was_left_before_the_clock_jumped(left, jump_s):
    age(left, jump_s)
    sweep(str(left.parent))
    assert not left.exists()


@pytest.mark.parametrize("name", ["node.lock", "spawn.lock"])
@pytest.mark.parametrize("jump_s", [0.0, 5 * 3600.0, -5 * 3600.0])
def test_sweep_leaves_a_directory_whose_lock_is_held_whatever_the_clock_says(left, name, jump_s):
    with FileLock(left / name):
        age(left, jump_s)
        sweep(str(left.parent))
        assert (left / "token").exists()


def test_sweep_leaves_a_directory_that_is_being_made(left):
    os.utime(left)
    sweep(str(left.parent))
    assert left.exists()


def test_sweep_leaves_what_has_no_lock_of_ours(tmp_path):
    directory = tmp_path / "3fa2"  # as Ray's temp directory of a cluster with a long name
    directory.mkdir()
    age(directory)
    sweep(str(tmp_path))
    assert directory.exists()


def test_sweep_follows_no_link(left, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "link").symlink_to(left)
    sweep(str(elsewhere))
    assert (left / "token").exists()


def test_sweep_without_a_directory_does_nothing(tmp_path):
    sweep(str(tmp_path / "none"))
