"""The job directory: what the login node and people find in it, and nobody else."""

import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from test_nodespec import SPEC

from eray._core.nodespec import NodeSpec
from eray._ray import job_home


@pytest.fixture
def spec(tmp_path: Path) -> NodeSpec:
    """A node whose supervisor and Ray have written logs that all may read, under an umask that hides nothing."""
    run_dir, before = tmp_path / "12r1", os.umask(0)
    logs = run_dir / "ray" / "session_latest" / "logs"
    logs.mkdir(parents=True)
    (logs / "raylet.err").write_text("why it ended")
    (run_dir / "eray.log").write_text("what was done")
    (run_dir / "token").write_text(SPEC.token)
    yield replace(SPEC, run_dir=str(run_dir), ray_dir=str(run_dir / "ray"), state_dir=str(tmp_path / ".eray"))
    os.umask(before)


def test_job_home_is_closed_to_others_and_holds_no_token(spec, tmp_path):
    job_home.publish(spec, {"gcs_address": "n1:1"})
    kept = job_home.keep_logs(spec)
    assert sorted(os.listdir(kept)) == ["eray.log", "raylet.err"]
    found = [tmp_path / ".eray", *(tmp_path / ".eray").rglob("*")]
    assert {stat.S_IMODE(path.stat().st_mode) for path in found if path.is_dir()} == {0o700}
    holding = [path for path in found if path.is_file() and SPEC.token in path.read_text()]
    assert holding == []
