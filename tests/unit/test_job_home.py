"""The job directory: what the login node and people find in it, and nobody else."""

import json
import os
import stat
import time
from dataclasses import replace
from pathlib import Path

import pytest
from test_nodespec import SPEC

from eray._core import naming
from eray._core.access import LIFE, START
from eray._core.nodespec import NodeSpec
from eray._ray import job_home
from eray._ray.notices import say

GONE_PID = 2**22 + 1  # no kernel gives it


@pytest.fixture
def spec(tmp_path: Path) -> NodeSpec:
    """A node whose supervisor and Ray have written logs that all may read, under an umask that hides nothing."""
    run_dir, before = tmp_path / "12r1", os.umask(0)
    logs = run_dir / "ray" / "session_latest" / "logs"
    logs.mkdir(parents=True)
    (logs / "raylet.err").write_text("why it ended")
    (run_dir / "ray_start.log").write_text("what was done")
    (run_dir / "token").write_text(SPEC.token)
    yield replace(SPEC, run_dir=str(run_dir), ray_dir=str(run_dir / "ray"), state_dir=str(tmp_path / ".eray"))
    os.umask(before)


def test_job_home_is_closed_to_others_and_holds_no_token(spec, tmp_path):
    job_home.publish(spec, {"gcs_address": "n1:1"})
    say("the first: it cannot start")
    kept = job_home.keep_logs(spec)
    assert sorted(os.listdir(kept)) == ["eray.log", "ray_start.log", "raylet.err"]
    said = (Path(kept) / "eray.log").read_text().splitlines()
    assert said[-1].endswith(" the first: it cannot start"), "what its supervisor told people, with the time"
    found = [tmp_path / ".eray", *(tmp_path / ".eray").rglob("*")]
    assert {stat.S_IMODE(path.stat().st_mode) for path in found if path.is_dir()} == {0o700}
    holding = [path for path in found if path.is_file() and SPEC.token in path.read_text()]
    assert holding == []


def test_state_directory_that_is_open_to_others_keeps_no_picture_and_says_so(spec, tmp_path, capsys):
    (tmp_path / ".eray").mkdir(mode=0o755)
    job_home.keep_picture(replace(spec, job=None, key="local-1a"), {"phase": "ended"})
    said = capsys.readouterr().err
    assert said.startswith(f"eray: how this cluster ended is not kept for `eray status`: {tmp_path}/.eray: is open to")
    assert f"`chmod 700 {tmp_path}/.eray`" in said
    assert list((tmp_path / ".eray").iterdir()) == []


@pytest.mark.parametrize(("age_days", "living"), [(0, ["rig-1", "rig-2"]), (179, ["rig-1", "rig-2"]), (181, [])])
def test_oldest_ended_clusters_are_removed_and_never_a_living_one(tmp_path, age_days, living):
    written = {"rig-1": "beacon.json", "rig-2": "beacon.0.json", "local": "picture.json"}
    written |= {f"rig-{number}": "picture.json" for number in (3, 4, 5)} | {"local-1a": "logs"}
    for age, (name, file) in enumerate(reversed(written.items())):  # the first is the oldest
        (tmp_path / name).mkdir()
        (tmp_path / name / file).touch()
        at = time.time() - age_days * 86_400 - age
        os.utime(tmp_path / name, (at, at))
    job_home.prune(str(tmp_path), keep=2)
    assert sorted(os.listdir(tmp_path)) == ["local", "local-1a", *living, "rig-5"]


def test_start_of_a_job_writes_its_beacon_and_makes_room(spec, tmp_path):
    jobs = tmp_path / ".eray" / "jobs"
    for number in range(job_home.KEPT_JOBS + 3):
        (jobs / f"rig-9{number}").mkdir(parents=True, mode=0o700)
    for directory in (jobs, jobs.parent):
        directory.chmod(0o700)
    mark = Path(naming.job_directory(spec.state_dir, spec.cluster, spec.job), naming.job_file(START, spec.key))
    mark.parent.mkdir(mode=0o700)
    mark.touch()
    job_home.begin(spec)
    living = [name for name in os.listdir(jobs) if "beacon.json" in os.listdir(jobs / name)]
    assert (len(living), len(os.listdir(jobs))) == (1, job_home.KEPT_JOBS + 1)
    assert not mark.exists(), "whoever looks asks the head from now on"


def test_cluster_of_a_machine_alone_tells_of_its_life_until_it_ends(spec, tmp_path):
    """What an earlier one that was killed left goes with the next start; what is of others stays."""
    local = replace(spec, job=None, key="local-1a")
    job_home.begin(local)
    directory = tmp_path / ".eray" / "jobs" / "local"
    (mine,) = directory.iterdir()
    told = json.loads(mine.read_text())
    assert (told["key"], told["pid"], spec.token in mine.read_text()) == ("local-1a", os.getpid(), False)
    others = {"local-2b": {"pid": GONE_PID}, "local-3c": {"pid": GONE_PID, "host": "another"}, "local-4d": {}}
    for key, about in others.items():
        (directory / naming.life_file(LIFE, key)).write_text(json.dumps(told | {"key": key} | about))
    job_home.begin(local)
    lives = {naming.life_file(LIFE, key) for key in ("local-1a", "local-3c", "local-4d")}
    assert {path.name for path in directory.iterdir()} == lives
    job_home.keep_picture(local, {"phase": "ended"})
    assert {path.name for path in directory.iterdir()} == lives - {mine.name} | {"picture.json"}
