import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from filelock import FileLock
from test_nodespec import SPEC

from eray._core.access import Access, Door
from eray._core.nodespec import BEACON_FILE, NODE_FILE, NodeSpec
from eray._io import clock
from eray._ray import home, job_home
from eray._ray.home import sweep


@pytest.mark.parametrize("job", ["12", None])
def test_what_a_node_writes_down_tells_which_cluster_it_is(tmp_path: Path, job: str | None) -> None:
    spec: NodeSpec = replace(SPEC, job=job, run_dir=str(tmp_path), state_dir=str(tmp_path / "home"), node_rank=0)
    home.announce(spec, {"gcs_address": "n1:1", "dashboard": None, "auth": "token", "token_path": spec.token_path})
    home.announce_beacon(spec)
    job_home.begin(spec)
    published = list((tmp_path / "home").rglob("beacon*.json"))
    assert len(published) == (job is not None)
    for kind, path in [
        (Access, tmp_path / NODE_FILE),
        *((Door, each) for each in (tmp_path / BEACON_FILE, *published)),
    ]:
        life = kind.from_json(json.loads(path.read_text()))
        assert life is not None
        assert (life.key, life.job, life.restart, life.node) == (spec.key, job, spec.restart, spec.nodes[0])
        assert (life.purpose, life.program) == (spec.purpose, spec.world.argv)
        if path not in published:
            assert life.began_at <= clock.unix()
            assert life.at_head
        assert spec.token not in path.read_text()


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
