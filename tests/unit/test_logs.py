"""Where the logs of a job are, and which one explains its failure."""

import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from eray._cli.main import main
from eray._core.naming import job_of_directory, user_directory
from eray._io.logs import LAST_WORDS, last_lines, logs_below, logs_in, telling_log
from eray._io.process import start_time

JOB = "7"


@dataclass
class Site:
    home: Path
    tmpdir: Path


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A home and a node's disk, as eray sees them."""
    for name in [name for name in os.environ if name.startswith(("SLURM", "ERAY_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("ERAY_STATE_DIR", str(tmp_path / "home"))
    with tempfile.TemporaryDirectory(prefix="el", dir="/tmp") as tmpdir:  # pytest's is too long for Ray
        os.mkdir(user_directory(tmpdir, os.getuid()), 0o700)
        monkeypatch.setenv("ERAY_TMPDIR", tmpdir)
        yield Site(tmp_path / "home", Path(tmpdir))


def kept(site, job, life, node, name, text="x\n", modified=1000.0):
    return written(site.home / "jobs" / job / "logs" / life / node / name, text, modified)


def live(site, key, name, text="x\n", modified=1000.0):
    return written(site.tmpdir / f"eray-{os.getuid()}" / key / name, text, modified)


def written(path, text="x\n", modified=1000.0):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (modified, modified))
    return str(path)


def shown(capsys, *words):
    assert main(["logs", *words]) == 0
    return capsys.readouterr().out.splitlines()


def paths(lines):
    return [line.split()[-1] for line in lines if not line.startswith("job ")]


@pytest.mark.parametrize(
    ("name", "job"),
    [
        ("7", "7"),
        ("7.0", "7"),
        ("7.0r2", "7"),
        ("7r1", "7"),
        ("rig-7", "7"),
        ("big-cluster-7", "7"),
        ("local-0a1b2c3d", "local-0a1b2c3d"),
        ("0a1b2c3d4e", None),  # Ray's temp directory under a short name
        ("lost+found", None),
    ],
)
def test_job_of_directory(name, job):
    assert job_of_directory(name) == job


def test_logs_in_are_newest_first_without_empty_ones_links_and_other_files(tmp_path):
    for number, name in enumerate(("b.log", "a.err", "c.out", "data.json")):
        written(tmp_path / name, modified=1000.0 + number)
    written(tmp_path / "empty.log", "")
    (tmp_path / "link.log").symlink_to(tmp_path / "b.log")
    written(tmp_path / "below" / "d.log")
    assert [os.path.basename(log.path) for log in logs_in([str(tmp_path)])] == ["c.out", "a.err", "b.log"]
    assert len(logs_below(str(tmp_path))) == 4
    assert logs_in([str(tmp_path / "none")]) == []


@pytest.mark.parametrize(
    ("files", "chosen"),
    [
        ({"n1/eray.log": 1, "n1/raylet.out": 2}, "n1/eray.log"),
        ({"n1/eray.log": 1, "n1/ray_process_exit.log": 2}, "n1/ray_process_exit.log"),
        ({"n1/ray_process_exit.log": 1, "n2/raylet.err": 3, "n3/raylet.err": 2}, "n3/raylet.err"),
        ({"n1/gcs_server.err": 1, "n1/raylet.err": 2}, "n1/raylet.err"),
        ({"n1/raylet.out": 1}, None),
    ],
)
def test_telling_log_is_that_of_the_first_to_end(files, chosen, tmp_path):
    for name, modified in files.items():
        written(tmp_path / name, modified=modified)
    found = telling_log(logs_below(str(tmp_path)))
    assert (found and os.path.relpath(found.path, tmp_path)) == chosen


def test_telling_log_of_last_words_leaves_what_ray_start_chats(tmp_path):
    written(tmp_path / "eray.log")
    assert telling_log(logs_in([str(tmp_path)]), LAST_WORDS) is None


def test_last_lines_of_a_long_file_are_its_end(tmp_path):
    path = written(tmp_path / "a.log", "".join(f"line {number}\n" for number in range(100_000)) + "y" * 600)
    assert last_lines(path, 3) == ["line 99998", "line 99999", "y" * 500]
    assert last_lines(str(tmp_path / "none"), 3) == []


def test_logs_of_the_last_job_newest_first(site, capsys):
    kept(site, "rig-6", "6r0", "n1", "eray.log", modified=900)
    old = kept(site, "rig-7", "7r0", "n1", "eray.log", modified=1000)
    new = [
        kept(site, "rig-7", "7r1", "n2", "raylet.out", "x" * 2000, 1003),
        kept(site, "rig-7", "7r1", "n1", "eray.log", modified=1002),
    ]
    now = live(site, "7.0", "eray.log", modified=1004)
    lines = shown(capsys)
    assert paths(lines) == [now, *new, old]
    assert lines[0] == f"job 7: logs live on this node in {os.path.dirname(now)}"
    assert lines[2] == f"job 7: logs kept in {site.home}/jobs/rig-7/logs/7r1"
    assert lines[3].split()[0] == "2,000"


def test_logs_of_ray_that_runs_are_those_of_its_session(site, capsys):
    run_dir = site.tmpdir / f"eray-{os.getuid()}" / JOB
    session = run_dir / "ray" / "session_2"
    path = written(session / "logs" / "raylet.err")
    os.symlink(session, run_dir / "ray" / "session_latest")
    assert [os.path.realpath(each) for each in paths(shown(capsys))] == [path]


@pytest.mark.parametrize("words", [("--job", "6"), ()])
def test_logs_of_a_named_job_or_of_this_one(words, site, monkeypatch, capsys):
    path = kept(site, "rig-6", "6r0", "n1", "eray.log", modified=900)
    kept(site, "rig-7", "7r0", "n1", "eray.log", modified=1000)
    if not words:
        monkeypatch.setenv("SLURM_JOB_ID", "6")
    assert paths(shown(capsys, *words)) == [path]


def test_logs_tail_explains_the_last_life(site, capsys):
    kept(site, "rig-7", "7r0", "n1", "raylet.err", "of the first life\n", 1000)
    path = kept(site, "rig-7", "7r1", "n2", "raylet.err", "one\ntwo\nthree\n", 1001)
    kept(site, "rig-7", "7r1", "n1", "raylet.out", modified=1002)
    assert shown(capsys, "--tail", "2") == [f"{path}:", "two", "three"]


def lives(site, key):
    """Let a supervisor of a cluster live here: this process. Return its log."""
    job = None if key.startswith("local-") else key.partition(".")[0]
    about = {"key": key, "job": job, "cluster": "", "restart": 0, "node": "n1", "auth": "token", "purpose": "up"}
    about |= {"hosts": [], "ports": [], "pid": os.getpid(), "started": start_time(os.getpid())}
    live(site, key, "beacon.json", json.dumps(about))
    return live(site, key, "eray.log", modified=900)


def test_logs_are_those_of_the_cluster_that_lives_here_and_of_several_the_user_chooses(site, capsys):
    ended = kept(site, "local-0e", "local-0er0", "n1", "eray.log", modified=1000)
    assert main(["logs"]) == 0
    said = capsys.readouterr()
    assert paths(said.out.splitlines()) == [ended]
    assert "no cluster of yours runs on this machine; the newest logs are of job local-0e;" in said.err
    own = []
    for key in ("7.0", "7"):
        own.append(lives(site, key))
        assert main(["logs"]) == 0
        said = capsys.readouterr()
        assert sorted(paths(said.out.splitlines())) == sorted(own)
        assert "eray: the logs of 7" in said.err
    other = lives(site, "local-1a")
    assert main(["logs", "--tail", "1"]) == 2
    said = capsys.readouterr()
    assert "several clusters run on this machine: 7 (`eray up`), local-1a (`eray up`); choose one with" in said.err
    assert said.out == ""
    assert paths(shown(capsys, "--job", "local-1a")) == [other]
    assert len(paths(shown(capsys, "--job", "7.0"))) == 2
    assert capsys.readouterr().err == "", "what was asked for needs no word"


@pytest.mark.parametrize("words", [(), ("--job", "9"), ("--job", "nope"), ("--tail", "0"), ("--tail", "x")])
def test_logs_that_are_not_there_are_wrong_usage(words, site, capsys):
    if words == ("--job", "9"):
        kept(site, "rig-7", "7r0", "n1", "eray.log")
    assert main(["logs", *words]) == 2
    assert capsys.readouterr().out == ""


def test_logs_below_a_directory_of_others_are_refused(site, capsys):
    os.chmod(user_directory(str(site.tmpdir), os.getuid()), 0o755)
    assert main(["logs"]) == 3
    assert "open to others" in capsys.readouterr().err
