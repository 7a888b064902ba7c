"""`eray doctor` on this machine, and the leaves that find out what it judges."""

import io
import json
import os
import resource
import socket
import subprocess
import sys
import tempfile
import threading
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout

import pytest

from eray._cli.main import command_parser
from eray._io import files, limits, programs, software
from eray._io.patience import answers
from eray._io.ports import busy_ports, silent_ports
from eray._io.skew import skew_s
from eray.errors import DirectoryError

SCRUBBED = ("SLURM", "ERAY_", "RAY_", "CUDA_VISIBLE", "ROCR_", "HIP_", "ZE_")


def as_a_command(words, environ):
    """Run `eray doctor` in a process of its own; its exit code and what it printed."""
    command = [sys.executable, "-m", "eray", "doctor", *words]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


def in_this_process(words, environ):
    out, err = io.StringIO(), io.StringIO()
    args = command_parser(["doctor"]).parse_args(["doctor", *words])
    with redirect_stdout(out), redirect_stderr(err):
        code = args.run(args, environ)
    return code, out.getvalue(), err.getvalue()


def doctor(*words, code=None, start=in_this_process, **environ):
    """Run `eray doctor` here with a temporary directory and home that are sound, changed by ``environ``."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(SCRUBBED)}
    with tempfile.TemporaryDirectory(prefix="ed", dir="/tmp") as directory:
        env |= {"ERAY_TMPDIR": directory, "ERAY_STATE_DIR": f"{directory}/state", **environ}
        found, out, err = start(words, env)
        left = os.listdir(directory)
    assert left == [], "doctor makes nothing"
    assert err == ""
    assert found in ((0, 3) if code is None else (code,)), out
    return out


def checks(**environ):
    found = [json.loads(line) for line in doctor("--json", **environ).splitlines()]
    assert len({check["node"] for check in found}) == 1
    return {check["name"]: check for check in found} | {"node": found[0]["node"]}


def step(**changes):
    environ = {
        "SLURM_JOB_ID": "12",
        "SLURM_STEP_ID": "0",
        "SLURM_STEP_NODELIST": "127.0.0.1,n9.invalid",
        "SLURM_STEP_TASKS_PER_NODE": "1(x2)",
        "SLURM_PROCID": "1",
        "SLURM_NODEID": "1",
        "SLURM_LOCALID": "0",
    }
    return {**environ, **changes}


def sixteen_ports_in_a_row(stack):
    """Listen on the loopback's first free sixteen of the ports below those that the kernel chooses."""
    for low in range(20000, 32000, 16):
        with ExitStack() as tried:
            try:
                for port in range(low, low + 16):
                    tried.enter_context(socket.create_server(("127.0.0.1", port)))
            except OSError:
                continue
            stack.push(tried.pop_all())
            return low
    raise AssertionError("no sixteen ports in a row are free")


def test_doctor_without_a_job_has_no_error_of_one():
    found = checks()
    assert found["node"] == socket.gethostname()
    assert found["environment"]["found"] == "no job"
    assert found["run-directory"]["status"] == "ok"
    assert found["secret"]["found"].endswith("made at its first use")


def test_doctor_without_a_job_sees_that_no_port_is_free_for_those_who_look():
    with ExitStack() as stack:
        low = sixteen_ports_in_a_row(stack)
        found = checks(ERAY_PORT_RANGE=f"{low}-{low + 15}")["ports"]
    assert (found["status"], found["remedy"]) == ("warning", "set ERAY_PORT_RANGE to a range with free ports")
    assert found["found"].startswith(f"all are busy here: {low} to {low + 15};")


@pytest.mark.parametrize(
    ("environ", "name", "status", "words"),
    [
        ({"ERAY_PORT_RANGE": "80"}, "environment", "error", "setting: ERAY_PORT_RANGE"),
        ({"SLURM_JOB_ID": "1", "SLURM_JOB_NODELIST": "n[1"}, "environment", "error", "slurm-format"),
        ({"SLURM_JOB_ID": "1", "SLURM_JOB_NODELIST": "n[1-2]", "PATH": "/none"}, "srun", "error", "not on PATH"),
        ({"SLURM_JOB_ID": "1", "SLURM_JOB_NODELIST": "n[1-2]"}, "environment", "note", "this host is none of them"),
        ({"ERAY_INTERFACE": "none0"}, "interface", "error", "none0"),
        ({"ERAY_TMPDIR": "/none"}, "temporary-directory", "error", "/none"),
        ({"ERAY_TMPDIR": "/none"}, "run-directory", "error", "is no directory"),
        ({"ERAY_TMPDIR": "/tmp/" + "x" * 40}, "run-directory", "error", "too long"),
        ({"ERAY_SECRET": "short"}, "environment", "error", "setting: ERAY_SECRET='(5 characters)': must have 32"),
        ({"ERAY_SECRET": "s" * 32}, "secret", "ok", "ERAY_SECRET, fingerprint "),
        ({"ERAY_AUTH": "disabled"}, "secret", "warning", "run code as you"),
        ({"ERAY_STATE_DIR": "/none/state"}, "state-directory", "error", "/none"),
        ({"https_proxy": "http://me:word@proxy:1"}, "proxies", "note", "https_proxy=http://…@proxy:1"),
        ({"RAY_ADDRESS": "10.0.0.1:1"}, "ray-address", "note", "10.0.0.1:1"),
        (step(), "environment", "ok", "step of job 12, 2 nodes, head 127.0.0.1"),
        (step(), "names", "error", "127.0.0.1"),
        (step(), "ports", "ok", "the head 127.0.0.1 can be reached"),
        (step(SLURM_PROCID="0", SLURM_NODEID="0"), "ports", "ok", "are free here"),
        (step(SLURM_PROCID="0", SLURM_NODEID="0"), "names", "warning", "n9.invalid"),
        (step(SLURM_STEP_NODELIST="n8.invalid,n9.invalid"), "names", "error", "n8.invalid"),
        (step(SLURM_STEP_NODELIST="n8.invalid,n9.invalid"), "ports", "note", "does not resolve"),
    ],
)
def test_doctor_names_what_is_wrong_here(environ, name, status, words):
    found = checks(**environ)[name]
    assert found["status"] == status, found
    assert words in found["found"]
    assert found["remedy"] or status in ("ok", "note")


def test_doctor_secret_word_and_proxys_password_are_never_shown():
    text = doctor(ERAY_SECRET="s3" * 20, https_proxy="http://me:word@proxy:1")
    assert "s3s3" not in text
    assert "word" not in text


def test_doctor_text_in_a_step_names_its_node_on_each_line():
    lines = doctor(**step()).splitlines()
    assert all(line.startswith("n9.invalid: ") for line in lines)
    assert len(lines) > 20


def test_doctor_text_has_a_remedy_under_each_fault_and_says_3():
    lines = doctor(ERAY_INTERFACE="none0", code=3, start=as_a_command).splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("error "))
    assert lines[at].split()[:2] == ["error", "interface"]
    assert lines[at + 1].split()[:2] == ["remedy", "interface"]
    assert "1 error" in lines[-1]


def test_doctor_imports_nothing_heavy():
    program = (
        "import sys; from eray._cli.main import main; main(['doctor']); "
        "sys.exit(str({'ray', 'jax', 'numpy', 'pydantic', 'asyncio'} & set(sys.modules) or 0))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stderr.strip() == "0"


@contextmanager
def listener(backlog=1):
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(backlog)
        yield server.getsockname()[1]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_busy_ports_are_those_that_something_listens_on():
    free = free_port()
    with listener() as taken:
        assert busy_ports((taken, free)) == (taken,)
        assert busy_ports((taken, free), "127.0.0.1") == (taken,)
    assert busy_ports((free,)) == ()  # a second look finds nothing left open


def test_silent_ports_neither_listen_nor_refuse():
    with ExitStack() as stack:
        heard, full = stack.enter_context(listener()), stack.enter_context(listener(backlog=0))
        for _ in range(3):  # Linux drops what comes to a full queue, as a firewall does
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(("127.0.0.1", full))
        ports = (heard, free_port(), full)
        assert silent_ports(["127.0.0.1"], ports, 0.1) == (full,)
        assert silent_ports([], ports, 0.1) == ports


def test_answers_leave_behind_what_hangs():
    never = threading.Event()
    calls = {"quick": lambda: 1, "hangs": lambda: never.wait(60) and 2, "queued": lambda: 3}
    assert answers(calls, 0.2, at_once=3) == {"quick": 1, "queued": 3}
    assert answers(calls, 0.2, at_once=1) == {"quick": 1}
    assert answers({}, 0.2) == {}
    never.set()


def test_answers_raise_what_a_call_raises():
    with pytest.raises(ZeroDivisionError):
        answers({"a": lambda: 1 / 0}, 5.0)


def test_skew_of_a_local_disk_is_none(tmp_path):
    assert abs(skew_s(str(tmp_path))) < 1.0
    assert os.listdir(tmp_path) == []
    assert skew_s(str(tmp_path / "none")) is None


def test_programs_are_found_by_name_with_their_arguments(tmp_path):
    for pid, words in {"7": ["/opt/raylet", "--x", ""], "8": ["bash", "raylet"], "9": [], "self": ["raylet"]}.items():
        (tmp_path / pid).mkdir()
        (tmp_path / pid / "cmdline").write_text("".join(f"{word}\0" for word in words))
    (found,) = programs.running({"raylet"}, str(tmp_path))
    assert (found.pid, found.uid, found.name, found.argv) == (7, os.getuid(), "raylet", ("/opt/raylet", "--x", ""))
    assert programs.arguments(os.getpid())[0].endswith(os.path.basename(sys.executable))
    assert programs.arguments(1 << 30) == ()


@pytest.mark.parametrize(
    ("group", "files_", "room"),
    [
        ("0::/a/b\n", {"a/b": ("max", "3"), "a": ("100", "40"), "": ("90", "50")}, 40),
        ("0::/a\n", {"a": ("max", "3")}, None),
        ("0::/\n", {"": ("10", "3")}, 7),
        ("3:cpu:/x\n2:pids:/a\n0::/b\n", {"pids/a": ("10", "9"), "pids": ("max", "9")}, 1),
        ("", {}, None),
    ],
)
def test_group_room_is_the_least_on_the_way_up(group, files_, room, tmp_path):
    (tmp_path / "proc" / "self").mkdir(parents=True)
    (tmp_path / "proc" / "self" / "cgroup").write_text(group)
    for path, (most, now) in files_.items():
        (tmp_path / "cg" / path).mkdir(parents=True, exist_ok=True)
        (tmp_path / "cg" / path / "pids.max").write_text(f"{most}\n")
        (tmp_path / "cg" / path / "pids.current").write_text(f"{now}\n")
    assert limits.group_room(str(tmp_path / "proc"), str(tmp_path / "cg")) == room


@pytest.mark.parametrize(
    ("group", "files_", "most"),
    [
        ("0::/a/b\n", {"a/b/memory.max": "max", "a/memory.max": "4096", "memory.max": "8192"}, 4096),
        ("4:memory:/job_7\n0::/x\n", {"memory/job_7/memory.limit_in_bytes": "2097152000"}, 2097152000),
        ("4:memory:/job_7\n", {"memory/job_7/memory.limit_in_bytes": "9223372036854771712"}, None),
        ("", {}, None),
    ],
)
def test_group_memory_is_the_least_on_the_way_up(group, files_, most, tmp_path):
    (tmp_path / "proc" / "self").mkdir(parents=True)
    (tmp_path / "proc" / "self" / "cgroup").write_text(group)
    for path, text in files_.items():
        (tmp_path / "cg" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "cg" / path).write_text(f"{text}\n")
    assert limits.group_memory(str(tmp_path / "proc"), str(tmp_path / "cg")) == most


@pytest.mark.parametrize(
    ("group", "path", "text", "count"),
    [
        ("0::/a/b\n", "a/b/memory.events", "low 0\noom 4\noom_kill 3\n", 3),
        ("4:memory:/job_7\n", "memory/job_7/memory.oom_control", "under_oom 0\noom_kill 1\n", 1),
        ("4:memory:/job_7\n", "memory/job_7/memory.oom_control", "under_oom 0\n", 0),
        ("", "memory.events", "oom_kill 9\n", 0),
    ],
)
def test_memory_kills_are_those_of_the_own_group(group, path, text, count, tmp_path):
    (tmp_path / "proc" / "self").mkdir(parents=True)
    (tmp_path / "proc" / "self" / "cgroup").write_text(group)
    (tmp_path / "cg" / path).parent.mkdir(parents=True)
    (tmp_path / "cg" / path).write_text(text)
    assert limits.memory_kills(str(tmp_path / "proc"), str(tmp_path / "cg")) == count


@pytest.mark.parametrize(
    ("group", "remedy"),
    [
        ("0::/user.slice/session-1.scope\n", "raise the limit of its container or session, or let it use less"),
        ("0::/system.slice/slurmstepd.scope/job_7/step_0/user/task_0\n", "ask for more (--mem)"),
    ],
    ids=["laptop", "Slurm"],
)
def test_memory_words_say_what_fits_the_place(group, remedy, tmp_path):
    own = tmp_path / "cg" / group.strip().removeprefix("0::/")
    own.mkdir(parents=True)
    (own / "memory.max").write_text(f"{3 * 2**29}\n")
    (tmp_path / "proc" / "self").mkdir(parents=True)
    (tmp_path / "proc" / "self" / "cgroup").write_text(group)
    words = limits.memory_words(str(tmp_path / "proc"), str(tmp_path / "cg"))
    assert words.endswith(f"its control group ran out of memory (at most 1.5 GiB); {remedy}")


def test_threads_of_user_count_this_process():
    before = limits.threads_of_user()
    assert before >= threading.active_count()


def test_limits_are_those_of_this_process():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert limits.hard_limit(resource.RLIMIT_NOFILE) in (hard, None)
    assert limits.soft_limit(resource.RLIMIT_NOFILE) in (soft, None)
    assert limits.has_pidfd() in (True, False)


def test_installed_versions_are_told_without_an_import():
    assert software.installed("pytest") == pytest.__version__
    assert software.installed("no-such-package-anywhere") is None


def test_check_possible_makes_nothing(tmp_path):
    files.check_possible(str(tmp_path / "a" / "b"), str(tmp_path))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("mode", "words"), [(0o755, "open to others"), (0o700, None), ("link", "symbolic link"), ("file", "no directory")]
)
def test_check_possible_judges_what_is_there(mode, words, tmp_path):
    level = tmp_path / "a"
    if mode == "link":
        level.symlink_to(tmp_path)
    elif mode == "file":
        level.write_text("")
    else:
        level.mkdir(mode)
    if words is None:
        files.check_possible(str(level / "b"), str(tmp_path))
    else:
        with pytest.raises(DirectoryError, match=words):
            files.check_possible(str(level / "b"), str(tmp_path))
