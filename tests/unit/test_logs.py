"""How a job ended, where its logs are, and which one explains its failure."""

import json
import os
import socket
import tempfile
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path

import pytest
from pictures import picture
from test_queue import PENDING, Squeue

from eray._cli.main import main
from eray._core.naming import job_of_directory, user_directory
from eray._core.nodespec import START_LOG
from eray._core.picture import Ending
from eray._io import clock
from eray._io.logs import LAST_WORDS, is_own, last_lines, logs_below, logs_in, telling_log
from eray._io.process import start_time
from eray._show.story import OUTPUT

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
    monkeypatch.setenv("PATH", str(tmp_path))  # no squeue
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
    return [line.split()[-1] for line in lines if line.startswith("  ")]


def ended(site, code=0, cause=None, *, directory="rig-7", file="picture.json", at=1000.0, **more):
    """Keep how a cluster ended."""
    more = {"phase": "ended", "taken_at": at, "remarks": ()} | more
    drawn = picture(ending=Ending(at=at, code=code, cause=cause), **more)
    return written(site.home / "jobs" / directory / file, json.dumps(drawn.to_json()), at)


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
        ({"n1/ray_start.log": 1, "n1/raylet.out": 2}, "n1/ray_start.log"),
        ({"n1/ray_start.log": 1, "n1/ray_process_exit.log": 2}, "n1/ray_process_exit.log"),
        ({"n1/ray_process_exit.log": 1, "n2/raylet.err": 3, "n3/raylet.err": 2}, "n3/raylet.err"),
        ({"n1/gcs_server.err": 1, "n1/raylet.err": 2}, "n1/raylet.err"),
        ({"n1/raylet.out": 1}, None),
    ],
)
def test_telling_log_is_that_of_the_first_to_end(files, chosen, tmp_path):
    for name, modified in files.items():
        written(tmp_path / name, modified=modified)
    found = telling_log(logs_below(str(tmp_path)), (*LAST_WORDS, START_LOG))
    assert (found and os.path.relpath(found.path, tmp_path)) == chosen


def test_telling_log_of_last_words_leaves_what_ray_start_chats(tmp_path):
    written(tmp_path / START_LOG)
    assert telling_log(logs_in([str(tmp_path)]), LAST_WORDS) is None


def test_last_lines_of_a_long_file_are_its_end(tmp_path):
    path = written(tmp_path / "a.log", "".join(f"line {number}\n" for number in range(100_000)) + "y" * 600)
    assert last_lines(path, 3) == ["line 99998", "line 99999", "y" * 500]
    assert last_lines(str(tmp_path / "none"), 3) == []


GREETING = """2026-12-03 05:44:06,570\tINFO usage_lib.py:448 -- Usage stats collection is disabled.
2026-12-03 05:44:10,990\tSUCC scripts.py:1085 -- Ray runtime started.
2026-12-03 05:44:10,990\tINFO cli_output_helpers.py:16 -- Note: The following commands are intended for use on
2026-12-03 05:44:10,991\tINFO scripts.py:1095 --   ray start --address='192.0.2.2:39287'
2026-12-03 05:44:10,991\tINFO scripts.py:1143 --   ray stop
"""


def test_last_lines_leave_out_how_ray_greets(tmp_path):
    complaint = "2026-12-03 05:44:11,000\tERR scripts.py:1300 -- Some Ray subprocesses exited unexpectedly:"
    path = written(tmp_path / START_LOG, f"{GREETING}{complaint}\n  raylet [exit code=-6]\n")
    assert last_lines(path, 9) == [complaint, "  raylet [exit code=-6]"]


@pytest.mark.parametrize(
    ("name", "text", "is_ours"),
    [
        ("eray.log", "x\n", True),
        ("job-driver-eray-1a.log", "x\n", True),
        ("worker-1a-02000000-7.out", ":job_id:02000000\n:actor_name:A\nactor says hi\n", True),
        ("worker-1a-02000000-7.err", ":job_id:02000000\n:actor_name:A\n", False),
        ("worker-1a-02000000-7.err", ":job_id:02000000\n:task_name:f\n" * 40, True),  # not worth reading
        ("python-core-worker-1a_7.log", "x\n", False),
        ("ray_start.log", "x\n", False),
        ("raylet.err", "x\n", False),
    ],
)
def test_is_own_tells_logs_of_eray_and_programs_from_those_of_ray(name, text, is_ours, tmp_path):
    written(tmp_path / name, text)
    assert [is_own(log) for log in logs_in([str(tmp_path)])] == [is_ours]


def test_logs_of_the_last_job_newest_first_and_own_ones_before_those_of_ray(site, capsys):
    kept(site, "rig-6", "6r0", "n1", "eray.log", modified=900)
    old = kept(site, "rig-7", "7r0", "n1", "eray.log", modified=1000)
    ray = kept(site, "rig-7", "7r1", "n2", "raylet.out", "x" * 2000, 1003)
    own = kept(site, "rig-7", "7r1", "n1", "eray.log", modified=1002)
    now = live(site, "7.0", "job-driver-eray-1a.log", modified=1004)
    lines = shown(capsys, "--all")
    assert paths(lines) == [now, own, ray, old]
    assert lines[0] == f"job 7: logs live on this node in {os.path.dirname(now)}"
    assert lines[2] == f"job 7: logs kept in {site.home}/jobs/rig-7/logs/7r1"
    assert lines[4].split()[0] == "2,000"
    lines = shown(capsys)
    assert paths(lines) == [now, own, old]
    assert lines[4] == "job 7: 1 file of Ray's there, 2,000 bytes; `--all` lists them"


def test_logs_of_ray_that_runs_are_those_of_its_session(site, capsys):
    run_dir = site.tmpdir / f"eray-{os.getuid()}" / JOB
    session = run_dir / "ray" / "session_2"
    path = written(session / "logs" / "raylet.err")
    os.symlink(session, run_dir / "ray" / "session_latest")
    assert [os.path.realpath(each) for each in paths(shown(capsys, "--all"))] == [path]


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


def test_logs_tail_of_a_cluster_that_runs_is_no_greeting_but_its_own_log(site, capsys):
    live(site, JOB, START_LOG, GREETING, 1002)
    path = live(site, JOB, "job-driver-eray-1a.log", "one\ntwo\n", 1001)
    assert shown(capsys, "--tail", "1") == [f"{path}:", "two"]


LOST = "raylet of node node0002 ended, raylet.err:\n    boom\n      SIGABRT"
TOLD = ["cause: raylet of node node0002 ended, raylet.err:", "  boom", "    SIGABRT"]
GONE = ["cause: node node0002 is lost"]
DIED = ["cause: process 1 ended with code 9; its last lines:", "  last word"]
OLD = ["said: waiting for node0001"]
KEPT = ["job 7: logs kept in ", "HERE"]
TAIL = ("--tail", "9")


@pytest.mark.parametrize(
    ("code", "cause", "log", "text", "words", "expected"),
    [
        (0, None, "n1/eray.log", "x", (), [*OLD, OUTPUT, *KEPT]),
        (0, None, "n1/eray.log", "x", TAIL, [*OLD, OUTPUT]),
        (4, LOST, "n1/eray.log", "x", (), [*TOLD, *OLD, OUTPUT, *KEPT]),
        (4, LOST, "n2/raylet.err", "boom\n  SIGABRT", TAIL, [*TOLD, *OLD, OUTPUT]),  # all is told
        (4, LOST, "n2/raylet.err", "why\nboom", TAIL, [*TOLD, *OLD, OUTPUT, "HERE", "why", "boom"]),
        (4, LOST, "n2/raylet.err", "why\n  SIGABRT", ("--tail", "1"), [TOLD[0], f"  {TOLD[2].strip()}", *OLD, OUTPUT]),
        (4, "node node0002 is lost", "node0001/eray.log", "x", TAIL, [*GONE, *OLD, OUTPUT]),  # the head's own
        (4, "node node0002 is lost", "node0002/eray.log", "no disk", TAIL, [*GONE, *OLD, OUTPUT, "HERE", "no disk"]),
        (4, "node node0002 is lost", "n2/ray_start.log", GREETING, TAIL, [*GONE, *OLD, OUTPUT]),
        (9, "process 1 ended with code 9", "n2/raylet.err", "x", TAIL, [*DIED, *OLD, OUTPUT]),
    ],
)
def test_logs_say_first_how_a_job_ended_and_why(code, cause, log, text, words, expected, site, capsys):
    remark = f"{cause}; its last lines:\nlast word" if code == 9 else cause or "waiting for node0001"
    ended(site, code, cause, remarks=((900.0, "waiting for node0001"), (1000.0, remark))[: 2 if cause else 1])
    path = kept(site, "rig-7", "7r0", *log.split("/"), text)
    head, *lines = shown(capsys, *words)
    assert head.startswith(f"job 7 on rig, eray run: ended {f'with code {code}' if code else 'well'} at 1970-01-01 ")
    wanted = [path if line == "HERE" else line for line in expected]
    assert len(lines) == len(wanted)
    assert [line for line, part in zip(lines, wanted, strict=True) if part not in line] == []


def test_logs_tail_of_a_cluster_of_eray_up_is_the_end_of_what_came_into_it(site, capsys):
    ended(site, 143, purpose="up")
    kept(site, "rig-7", "7r0", "n1", "eray.log", "SIGTERM: stopping\n", 1000)
    path = kept(site, "rig-7", "7r0", "n1", "job-driver-eray-1a.log", "one\ntwo\n", 900)
    head, *lines = shown(capsys, "--tail", "1")
    assert head.startswith("job 7 on rig, eray up: stopped by SIGTERM at ")
    assert lines == [f"{path}:", "two"]


@pytest.mark.parametrize(
    ("life", "directory", "file", "fits"),
    [
        ({}, "rig-7", "picture.json", True),
        ({"restart": 1}, "rig-7", "picture.json", False),  # of another life, whose logs are gone
        ({"key": "7.0"}, "rig-7", "picture.0.json", False),
        ({"key": "local-1a", "job": None, "cluster": ""}, "local", "picture.json", False),
    ],
)
def test_how_it_ended_stands_with_the_logs_of_that_life_and_alone_where_there_are_none(
    life, directory, file, fits, site, capsys
):
    kept(site, "rig-7", "7r0", "n1", "eray.log", modified=900)
    ended(site, 1, "process 1 ended", directory=directory, file=file, **life)
    lines = shown(capsys)
    assert lines[1] == "cause: process 1 ended"
    assert ("no logs are kept" in "\n".join(lines)) != fits
    local = life.get("key") == "local-1a"
    assert (lines[-1].startswith("job local-1a: no logs are kept (of a cluster of one machine only when")) == local
    assert len(paths(lines)) == (0 if local else 1)


def door(key, **more):
    """Return what a head, here this process, writes of how it is reached."""
    job = None if key.startswith("local-") else key.partition(".")[0]
    about = {"key": key, "job": job, "cluster": "", "restart": 0, "node": "n1", "auth": "token", "purpose": "up"}
    about |= {"hosts": [], "ports": [], "pid": os.getpid(), "started": start_time(os.getpid())}
    return json.dumps(about | more)


def lives(site, key):
    """Let a supervisor of a cluster live here. Return its log."""
    live(site, key, "beacon.json", door(key))
    return live(site, key, "job-driver-eray-1a.log", modified=900)


def published(site, file, directory="rig-7", key="7", **more):
    """Let a head write its beacon into the job directory, or a launcher its start mark."""
    mark = {"timeout_s": 1e12} if file.startswith("start") else {}
    return written(site.home / "jobs" / directory / file, door(key, **mark, **more))


@pytest.mark.parametrize(
    ("file", "life", "first"),
    [
        ("beacon.json", {"restart": 1, "began_at": 2000.0}, "job 7 (restart 1) runs again since 1970-01-01 HERE"),
        ("start.json", {"restart": 1, "began_at": 2000.0}, "job 7 (restart 1) starts again since 1970-01-01 HERE"),
        ("beacon.0.json", {"key": "7.0", "began_at": 2000.0}, "job 7.0 runs since 1970-01-01 HERE"),
        ("beacon.json", {"began_at": 900.0}, None),  # the life that ended: its head was too slow to take it away
        ("start.json", {"began_at": 2000.0, "pid": 2**22 + 1, "node": socket.gethostname()}, None),  # was killed
        ("beacon.json", {"began_at": 2000.0, "hosts": 1}, None),  # another version wrote it
        ("beacon.json", {"directory": "rig-8", "key": "8", "began_at": 2000.0}, None),
    ],
)
@pytest.mark.parametrize("words", [(), ("--tail", "5")])
def test_logs_of_an_earlier_life_begin_with_the_life_that_goes_on(words, file, life, first, site, monkeypatch, capsys):
    monkeypatch.setattr(clock, "zone", lambda: UTC)
    ended(site, 4, "node node0002 is lost")
    kept(site, "rig-7", "7r0", "n1", "eray.log", modified=900)
    published(site, file, **life)
    lines = shown(capsys, "--job", "7", *words)
    again = first is not None
    whose = "its life before" if again and "again" in first else "7"
    told = f"00:33:20 UTC (`eray status --job {life.get('key', '7')}`); this is how {whose} ended (restart 0):"
    assert lines[:1] == ([first.replace("HERE", told)] if again else lines[:1])
    assert lines[again].startswith("job 7 on rig, eray run: ended with code 4 at ")


LIVES = {"local-2b": {"pid": 2**22 + 1}, "local-3c": {"pid": os.getpid()}, "local-4d": {"host": "another"}}


@pytest.mark.parametrize("words", [(), ("--job", "local-2b")], ids=["last", "by name"])
@pytest.mark.parametrize("has_earlier", [True, False])
def test_cluster_of_this_machine_that_was_killed_is_told_before_another(words, has_earlier, site, capsys):
    if has_earlier:
        ended(site, 4, directory="local", key="local-1a", job=None)
    for key, life in LIVES.items():
        told = door(key, **{"began_at": 2000.0, "host": socket.gethostname()} | life)
        written(site.home / "jobs" / "local" / f"life.{key}.json", told)
    assert main(["logs", *words]) == (0 if has_earlier and not words else 2)
    said = "".join(capsys.readouterr())
    assert "cluster local-2b began at 1970-01-01 " in said
    assert "its process is gone: it was killed before its logs were kept" in said
    assert ("this is how local-1a ended" in said) == (has_earlier and not words)
    assert "local-3c" not in said
    assert "local-4d" not in said


def test_logs_of_an_earlier_life_whose_end_is_not_known_are_called_so(site, capsys):
    kept(site, "rig-7", "7r0", "n1", "eray.log", modified=900)
    published(site, "beacon.json", restart=1, began_at=2000.0)
    assert shown(capsys)[0].endswith("; these are the logs of its life before:")


SRUN = "its logs are on its nodes until it ends; `srun --jobid=7 --overlap -N1"


@pytest.mark.parametrize(
    ("file", "job", "expected"),
    [
        ("beacon.json", "7", ("job 7 runs since ", f", head n1: {SRUN} -w n1 eray logs`", "`eray status --job 7`")),
        ("beacon.0.json", "7", ("job 7.0 runs since ", f"{SRUN} -w n1 eray logs`", "`eray status --job 7.0`")),
        ("start.json", "7", ("job 7 starts since ", f", called on n1: {SRUN} eray logs`", "`eray status --job 7`")),
        ("here", "7", ("job 7 starts here since ", "without logs yet; `eray status --job 7`")),
        ("here", "local-1a", ("cluster local-1a starts here since ", "`eray status --job local-1a`")),
    ],
)
@pytest.mark.parametrize("is_named", [True, False])
def test_logs_of_a_cluster_that_has_none_yet_or_has_them_elsewhere(is_named, file, job, expected, site, capsys):
    if file == "here":
        live(site, job, "beacon.json", door(job, began_at=2000.0))
    else:
        published(site, file, key="7.0" if ".0." in file else "7", began_at=2000.0)
    assert main(["logs", *(["--job", job] if is_named else [])]) == 2
    said = capsys.readouterr().err
    assert [part for part in expected if part not in said] == []
    assert "no logs of" not in said
    assert "one machine" not in said


@pytest.mark.parametrize("answer", ["", PENDING], ids=["over", "in the queue"])
@pytest.mark.parametrize("has_earlier", [True, False])
def test_cluster_that_slurm_killed_does_not_run(answer, has_earlier, site, tmp_path, monkeypatch, capsys):
    squeue = Squeue(tmp_path)
    squeue.answers(answer.replace("42", "7 "))
    monkeypatch.setenv("PATH", squeue.environ["PATH"])
    if has_earlier:
        ended(site, 4, "node node0002 is lost")
    published(site, "beacon.json", restart=1, began_at=2000.0)
    assert main(["logs", "--job", "7"]) == (0 if has_earlier else 2)
    said = "".join(capsys.readouterr())
    again = " again" if has_earlier else ""
    assert (f"job 7 (restart 1) runs{again} since " in said) == bool(answer)
    killed = "Slurm's queue has job 7 no more, so Slurm ended it before its logs were kept"
    assert (f"job 7 (restart 1) began{again} at " in said and killed in said) == (not answer)


@pytest.mark.parametrize(("job", "is_told"), [("9", False), ("local-1a", True)])
def test_only_of_a_cluster_of_one_machine_it_is_told_when_its_logs_are_kept(job, is_told, site, capsys):
    assert main(["logs", "--job", job]) == 2
    assert ("of a cluster of one machine only when" in capsys.readouterr().err) == is_told


NOTHING = "nothing that eray or a program said is in a log yet"


@pytest.mark.parametrize(
    ("key", "purpose", "names", "expected"),
    [
        ("local-1a", "run", (), [f"{NOTHING}; what the program prints stands where `eray run` prints it"]),
        ("local-1a", "tasks", (), [f"{NOTHING}; what the program prints stands where it was started"]),
        ("local-1a", "up", (), [NOTHING]),
        ("7", "run", (), [f"{NOTHING}; {OUTPUT}"]),
        ("local-1a", "up", ("worker-1a-01000000-7.err", "job-driver-b.log", "job-driver-a.log"), ["job-driver-b.log:"]),
    ],
)
def test_logs_tail_of_a_cluster_that_runs_shows_what_a_program_printed_and_nothing_of_ray(
    key, purpose, names, expected, site, capsys
):
    live(site, key, "beacon.json", door(key, purpose=purpose))
    live(site, key, "python-core-driver-01_7.log", "I0101 noise\n", 1009)
    for number, name in enumerate(names):
        live(site, key, name, f"{name} says\n", 1008.0 - number)
    lines = shown(capsys, "--tail", "5")
    assert [line.endswith(part) for line, part in zip(lines, expected, strict=False)] == [True]
    assert lines[1:] == [f"{expected[0][:-1]} says"] * bool(names)


@pytest.mark.parametrize(
    ("purpose", "code", "last"),
    [
        ("run", 4, "what the program prints stands where `eray run` prints it"),
        ("run", 9, "what the program prints stands where `eray run` prints it"),
        ("tasks", 4, "what the program prints stands where it was started"),
        ("up", 4, "what the last Ray Job printed is in HERE"),
    ],
)
def test_logs_tail_without_a_log_ends_with_where_the_output_is(purpose, code, last, site, capsys):
    life = {"key": "local-1a", "job": None, "cluster": "", "purpose": purpose}
    ended(site, code, "raylet ended:\n  boom", directory="local", **life)
    kept(site, "local-1a", "local-1ar0", "n1", "raylet.err", "boom\n")
    path = kept(site, "local-1a", "local-1ar0", "n1", "job-driver-eray-1a.log")
    lines = shown(capsys, "--tail", "5")
    assert lines[1:] == ["cause: raylet ended:", "  boom", last.replace("HERE", path)]


def test_logs_are_those_of_the_cluster_that_lives_here_and_of_several_the_user_chooses(site, capsys):
    of_it = kept(site, "local-0e", "local-0er0", "n1", "eray.log", modified=1000)
    assert main(["logs"]) == 0
    said = capsys.readouterr()
    assert paths(said.out.splitlines()) == [of_it]
    assert "no cluster of yours runs on this machine; the last was job local-0e;" in said.err
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


@pytest.mark.parametrize("words", [(), ("--job", "9"), ("--job", "nope")])
def test_logs_that_are_not_there_are_wrong_usage(words, site, capsys):
    if words == ("--job", "9"):
        kept(site, "rig-7", "7r0", "n1", "eray.log")
    assert main(["logs", *words]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.endswith("; the last jobs known there are 7\n") == (words == ("--job", "9"))


@pytest.mark.parametrize("text", ["x", "0", "-1", "1.5"])
def test_logs_tail_is_a_whole_number(text, site, capsys):
    assert main(["logs", f"--tail={text}"]) == 2
    assert f"argument --tail: '{text}' must be a whole number, 1 or more" in capsys.readouterr().err


def test_logs_below_a_directory_of_others_are_refused(site, capsys):
    os.chmod(user_directory(str(site.tmpdir), os.getuid()), 0o755)
    assert main(["logs"]) == 3
    assert "open to others" in capsys.readouterr().err
