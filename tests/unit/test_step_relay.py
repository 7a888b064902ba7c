"""What `eray run` in a batch shell does with signals: the command itself, with a srun that only says what it hears."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

SRUN = """#!/bin/sh
trap 'echo terminated; exit 9' TERM
echo ready
while read -r number; do echo "heard $number"; [ "$number" = 2 ] && exit 7; done
"""
BATCH = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n[1-2]", "SLURM_JOB_NUM_NODES": "2", "SLURM_NNODES": "2"}

Launch = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def launch(tmp_path: Path) -> Iterator[Launch]:
    (tmp_path / "srun").write_text(SRUN)
    (tmp_path / "srun").chmod(0o755)
    started: list[subprocess.Popen[str]] = []

    def start(**env: str) -> "subprocess.Popen[str]":
        child = subprocess.Popen(
            [sys.executable, "-m", "eray", "run", "--", "true"],
            env=BATCH | {"PATH": f"{tmp_path}:/bin:/usr/bin", "PYTHONPATH": os.getcwd()} | env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(child)
        assert hear(child) == "ready"
        return child

    yield start
    for child in started:
        child.kill()
        child.wait()


def hear(child: "subprocess.Popen[str]") -> str:
    assert child.stdout is not None
    return child.stdout.readline().strip()


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGUSR2])
def test_user_signals_are_passed_on_each_time(launch: Launch, number: signal.Signals) -> None:
    child = launch()
    for _ in range(3):
        child.send_signal(number)
        assert hear(child) == f"heard {int(number)}"
    child.send_signal(signal.SIGINT)
    assert hear(child) == "heard 2"
    assert child.wait(10) == 7


def test_second_sigterm_ends_the_step_at_once(launch: Launch) -> None:
    child = launch()
    child.send_signal(signal.SIGTERM)
    assert hear(child) == "heard 15"
    child.send_signal(signal.SIGTERM)
    assert hear(child) == "terminated"
    assert child.wait(10) == 9


def test_sigterm_that_warns_is_passed_on_once_more(launch: Launch) -> None:
    child = launch(ERAY_PREEMPTION_SIGNAL="USR1,TERM")
    for _ in range(2):
        child.send_signal(signal.SIGTERM)
        assert hear(child) == "heard 15"
    child.send_signal(signal.SIGTERM)
    assert hear(child) == "terminated"


def test_bad_setting_is_said_before_anything_starts(tmp_path: Path) -> None:
    env = BATCH | {"PATH": "/bin", "PYTHONPATH": os.getcwd(), "ERAY_PREEMPTION_SIGNAL": "KILL"}
    done = subprocess.run(
        [sys.executable, "-m", "eray", "run", "--", "true"], env=env, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 3
    assert "ERAY_PREEMPTION_SIGNAL='KILL': must be none, or of USR1, USR2 and TERM" in done.stderr
