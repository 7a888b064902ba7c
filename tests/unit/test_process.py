"""Starting, watching and stopping processes that are ours."""

import os
import signal
import subprocess
import sys
import time

import pytest

from eray._io import process

ENV = {"PATH": os.environ["PATH"], "ONLY": "this"}


def shell(script: str, **options) -> subprocess.Popen:
    return process.spawn(["/bin/sh", "-c", script], env=ENV, **options)


def line_of(child: subprocess.Popen) -> str:
    return child.stdout.readline().decode().strip()


def test_spawn_has_its_own_session_and_only_the_given_environment(tmp_path):
    log = tmp_path / "child.log"
    child = shell("echo $ONLY-$HOME; echo bad >&2; ps -o sid= -p $$ 2>/dev/null; read x; echo end-$?", output=str(log))
    assert child.wait(5) == 0
    lines = log.read_text().split()
    assert lines[:2] == ["this-", "bad"]
    assert lines[-1] == "end-1"  # no input
    assert log.stat().st_mode & 0o777 == 0o600
    assert shell("echo more", output=str(log)).wait(5) == 0
    assert log.read_text().endswith("more\n")


def test_spawn_is_a_session_leader():
    child = shell("exec sleep 60")
    assert os.getsid(child.pid) == child.pid
    assert process.terminate(child, 5.0) == -signal.SIGTERM


def test_spawn_affinity_is_the_childs_alone():
    ours = os.sched_getaffinity(0)
    child = process.spawn(
        [sys.executable, "-S", "-c", "import os; print(sorted(os.sched_getaffinity(0)))"],
        env=ENV,
        affinity=[min(ours)],
        output=subprocess.PIPE,
    )
    assert line_of(child) == str([min(ours)])
    child.wait()
    child.stdout.close()
    assert os.sched_getaffinity(0) == ours


def test_spawn_unknown_program_is_an_os_error():
    with pytest.raises(FileNotFoundError):
        process.spawn(["/no/such/program"], env=ENV)


def test_terminate_gentle_child_ends_by_itself():
    child = shell("trap 'exit 3' TERM; echo ready; while :; do sleep 0.02; done", output=subprocess.PIPE)
    assert line_of(child) == "ready"
    assert process.terminate(child, 5.0) == 3
    child.stdout.close()


def test_terminate_stubborn_tree_is_killed_also_in_other_sessions():
    script = "trap '' TERM; setsid sh -c 'trap \"\" TERM; sleep 60 & sleep 61' & sleep 62 & echo ready; wait; sleep 63"
    child = shell(script, output=subprocess.PIPE)
    assert line_of(child) == "ready"
    deadline = time.monotonic() + 5
    while len(family := process.descendants(child.pid)) < 4 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(family) >= 4
    assert process.terminate(child, 0.1) == -signal.SIGKILL
    assert process.wait_gone(family, 0.0) == ()
    child.stdout.close()


def test_terminate_without_grace_sends_no_sigterm():
    child = shell("trap 'echo asked; exit 3' TERM; echo ready; while :; do sleep 0.02; done", output=subprocess.PIPE)
    assert line_of(child) == "ready"
    assert process.terminate(child, 0.0) == -signal.SIGKILL
    assert child.stdout.read() == b""
    child.stdout.close()


def test_kill_family_finds_what_a_dead_leader_left_in_its_session():
    child = shell("sleep 60 & echo $!", output=subprocess.PIPE)
    orphan = process.identity(int(line_of(child)))
    assert child.wait(5) == 0
    assert orphan is not None
    process.kill_family(child)
    assert process.wait_gone([orphan], 5.0) == ()
    child.stdout.close()


def test_kill_another_life_of_the_pid_is_not_hit():
    child = shell("exec sleep 60")
    now = process.identity(child.pid)
    assert now is not None
    assert not process.kill(process.Identity(now.pid, now.started - 1), signal.SIGKILL)
    assert process.is_alive(child.pid, now.started)
    assert not process.is_alive(child.pid, now.started - 1)
    assert process.wait_gone([now], 0.02) == (now,)
    assert process.kill(now, signal.SIGKILL)
    assert child.wait(5) == -signal.SIGKILL
    assert not process.kill(now, signal.SIGKILL)


def test_is_alive_zombie_is_dead():
    child = shell("exit 0")
    deadline = time.monotonic() + 5
    while process.is_alive(child.pid) and time.monotonic() < deadline:
        time.sleep(0.005)
    assert not process.is_alive(child.pid)
    assert child.wait() == 0
    assert process.is_alive(os.getpid(), process.start_time(os.getpid()))


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (0, "ended with code 0"),
        (7, "ended with code 7"),
        (-9, "was killed (SIGKILL, 137): out of memory, or by somebody's `kill -9`?"),
        (137, "was killed (SIGKILL, 137): out of memory"),
        (-15, "was asked to end (SIGTERM, 143)"),
        (139, "crashed (SIGSEGV, 139)"),
        (-6, "aborted (SIGABRT, 134)"),
        (-10, "ended by a signal (SIGUSR1, 138)"),
        (127, "the program was not found"),
        (126, "cannot be executed"),
        (255, "ended with code 255"),
    ],
)
def test_exit_words_say_how_it_ended(code, words):
    assert words in process.exit_words(code, in_job=False)


def test_exit_words_speak_of_slurm_only_in_a_job():
    words = {code: process.exit_words(code, in_job=True) for code in (-9, -11)}
    assert words[-9] == "was killed (SIGKILL, 137): out of memory, or Slurm's KillWait was over?"
    assert words[-11] == process.exit_words(-11, in_job=False)


def test_exit_code_is_what_a_shell_shows():
    assert [process.exit_code(code) for code in (0, 7, -9, -15)] == [0, 7, 137, 143]
