"""What `eray up` and `eray run` hand the step that they start: seen by a program named srun."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from eray._core import naming
from eray._io.secret import ensure_secret

JOB = {"SLURM_JOB_ID": "42", "SLURM_CLUSTER_NAME": "rig", "SLURM_JOB_NODELIST": "n[1-2]", "SLURM_RESTART_COUNT": "3"}


@pytest.fixture
def bin_dir(tmp_path: Path) -> Path:
    """A directory with a srun that prints the secret of its environment."""
    path = tmp_path / "bin"
    path.mkdir()
    (path / "srun").write_text('#!/bin/sh\necho "$ERAY_SECRET"\n')
    (path / "srun").chmod(0o755)
    return path


def secret_of_step(command: list[str], bin_dir: Path, state: Path, **more: str) -> str:
    env = {"PATH": f"{bin_dir}:{os.defpath}", "ERAY_STATE_DIR": str(state), "PYTHONPATH": os.pathsep.join(sys.path)}
    words = [sys.executable, "-m", "eray", *command]
    done = subprocess.run(words, env=env | JOB | more, capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.strip()


@pytest.mark.parametrize("command", [["up"], ["run", "--", "true"]], ids=lambda words: words[0])
def test_step_gets_a_secret_that_the_home_can_derive_again(command, bin_dir, tmp_path):
    found = secret_of_step(command, bin_dir, tmp_path / "state")
    kept = ensure_secret(str(tmp_path / "state"))
    assert found == naming.launch_secret(kept, "rig", "42", 3)


def test_step_gets_the_users_secret_where_one_is_set(bin_dir, tmp_path):
    assert secret_of_step(["up"], bin_dir, tmp_path / "state", ERAY_SECRET="u" * 32) == "u" * 32
    assert not list((tmp_path / "state").rglob("*.json")), "a start that is over leaves no mark"
    assert not (tmp_path / "state" / "secret").exists()


def test_start_stands_in_the_home_while_no_head_has_told_of_it(bin_dir, tmp_path):
    mark = tmp_path / "state" / "jobs" / "rig-42" / "start.json"
    (bin_dir / "srun").write_text(f"#!/bin/sh\nuntil [ -s {mark} ]; do :; done; cat {mark}\n")
    told = json.loads(secret_of_step(["up"], bin_dir, tmp_path / "state"))
    assert {name: told[name] for name in ("key", "job", "cluster", "restart", "purpose")} == {
        "key": "42",
        "job": "42",
        "cluster": "rig",
        "restart": 3,
        "purpose": "up",
    }
    assert not mark.exists()


@pytest.mark.parametrize("more", [{"ERAY_SECRET": ""}, {"ERAY_AUTH": "disabled"}], ids=str)
def test_step_gets_a_random_secret_where_no_home_keeps_one(more, bin_dir, tmp_path):
    parent = tmp_path / "file"
    parent.touch()  # no directory can be in it
    found = {secret_of_step(["up"], bin_dir, parent / "state", **more) for _ in range(2)}
    assert len(found) == 2
    assert {len(secret) for secret in found} == {64}


def test_srun_that_is_killed_is_told(bin_dir, tmp_path):
    (bin_dir / "srun").write_text("#!/bin/sh\nkill -9 $$\n")
    env = {"PATH": f"{bin_dir}:{os.defpath}", "ERAY_STATE_DIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    words = [sys.executable, "-m", "eray", "run", "--", "true"]
    done = subprocess.run(words, env=env | JOB, capture_output=True, text=True, timeout=30)
    assert done.returncode == 137
    assert done.stderr.count("\n") == 1
    assert "which held the step of `eray run`, was ended by SIGKILL; see by `squeue --steps --jobs=42`" in done.stderr
