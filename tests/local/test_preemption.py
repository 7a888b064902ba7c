"""A warning that the job is about to end: every process hears of it, and all save at the same step."""

import os
import re
import shutil
import signal
import socket
from pathlib import Path

import pytest
from commands import Result, Running
from laptop import PLAIN_RAY, Laptop, await_text, lines_of, until

pytestmark = [pytest.mark.ray, pytest.mark.jax]

PROGRAMS = Path(__file__).parent / "programs"
STEPS = PROGRAMS / "steps.py"


def start(laptop: Laptop, *options: str, restarts: int = 0, **env: str) -> Running:
    run = laptop.eray("run", "-n", "2", "--max-restarts", str(restarts), "--", "python", STEPS, *options, **env)
    for index in range(2):
        await_text(run, f"process {index} is in")
    return run


def saved(result: Result) -> int:
    """Return the step at which both processes saved; fail unless it was one, and the command ended well."""
    said = lines_of(result.check())
    steps = [[int(line.removeprefix("saved at ")) for line in said[i] if line.startswith("saved at ")] for i in (0, 1)]
    assert len(steps[0]) == 1, result.output
    assert steps[0] == steps[1], result.output
    return steps[0][0]


@pytest.mark.parametrize("options", [(), pytest.param(("--jax",), id="with collectives")])
def test_signal_to_the_run_saves_once_at_the_same_step(laptop: Laptop, options: tuple[str, ...]) -> None:
    run = start(laptop, *options)
    run.signal(signal.SIGUSR1)
    result = run.wait(30)
    assert saved(result) >= 3
    why = f"SIGUSR1 at {socket.gethostname()}"
    assert result.stdout.count(f"because of {why}\n") == 2
    assert result.stderr.count(f"eray: {why}: this job is about to end") == 1


def test_signal_before_the_first_step_saves_at_that(laptop: Laptop) -> None:
    run = start(laptop, "--late")
    run.signal(signal.SIGUSR2)
    assert saved(run.wait(30)) == 3


@pytest.mark.full
def test_signal_while_ray_starts_is_known_to_those_who_join_later(laptop: Laptop) -> None:
    run = laptop.eray("run", "-n", "2", "--", "python", STEPS)
    laptop.pid_of("gcs_server")
    run.signal(signal.SIGUSR1)
    assert saved(run.wait(60)) == 3


def test_signal_reaches_the_handler_of_the_program_and_kills_nobody(laptop: Laptop) -> None:
    # The shells around the processes have no handler: the signal would end them.
    script = 'if [ "$ERAY_PROCESS_INDEX" = 0 ]; then python "$0" --own; else python "$0"; fi; echo "shell is alive"'
    run = laptop.eray("run", "-n", "2", "--", "sh", "-c", script, STEPS)
    for index in range(2):
        await_text(run, f"process {index} is in")
    run.signal(signal.SIGUSR1)
    result = run.wait(30)
    saved(result)
    assert result.stdout.count("[0] the program's own handler\n") == 1
    assert "[1] the program's own handler" not in result.stdout
    assert result.stdout.count("shell is alive") == 2


@pytest.mark.full
def test_world_that_is_started_again_after_the_warning_saves_at_its_first_step(laptop: Laptop) -> None:
    run = start(laptop, "--die", restarts=1)
    run.signal(signal.SIGUSR1)
    result = run.wait(60)
    assert saved(result) == 3
    assert "was killed (SIGKILL, 137)" in result.stderr


@pytest.mark.full
def test_signal_to_all_processes_of_a_step_leaves_ray_alive(laptop: Laptop) -> None:
    run = start(laptop)
    daemons = [pid for pid, line in laptop.processes().items() if "raylet" in line or "gcs_server" in line]
    assert len(daemons) >= 2
    for pid in (*daemons, laptop.pid_of("ray::Coordinator"), run.process.pid):
        os.kill(pid, signal.SIGUSR1)
    assert saved(run.wait(30)) >= 3


@pytest.mark.full
@pytest.mark.parametrize("options", [(), ("--ray",)], ids=["", "ray.init() before"])
def test_sigterm_that_is_a_warning_does_not_end_the_run(laptop: Laptop, options: tuple[str, ...]) -> None:
    run = start(laptop, *options, ERAY_PREEMPTION_SIGNAL="TERM")
    run.signal(signal.SIGTERM)
    run.signal(signal.SIGTERM)  # by way of the launcher too
    assert saved(run.wait(30)) >= 3


@pytest.mark.full
def test_signal_that_is_no_warning_is_the_programs_own(laptop: Laptop) -> None:
    run = start(laptop, "--own", ERAY_PREEMPTION_SIGNAL="USR2")
    run.signal(signal.SIGUSR1)
    until(lambda: run.output.count("the program's own handler") == 2 or None, 10.0, lambda: run.output)
    assert "is about to end" not in run.output
    run.signal(signal.SIGUSR2)
    saved(run.wait(30))


@pytest.mark.parametrize(
    ("options", "what"), [((), "SIGUSR1"), pytest.param(("--tell",), "the queue's word", id="own handler")]
)
def test_signal_to_a_process_that_started_its_supervisor(laptop: Laptop, options: tuple[str, ...], what: str) -> None:
    alone = laptop.python(STEPS, *options)
    await_text(alone, "process 0 is in")
    alone.signal(signal.SIGUSR1)
    result = alone.wait(30).check()
    assert re.search(r"^saved at \d+$", result.stdout, re.M), result.output
    assert f"because of {what} at process 0 on {socket.gethostname()}\n" in result.stdout


def test_sigterm_that_is_a_warning_is_heard_by_a_program_that_started_ray_itself(laptop: Laptop) -> None:
    files = laptop.root / "r"
    own = laptop.python(STEPS, "--ray", ERAY_PREEMPTION_SIGNAL="TERM", RAY_FILES=str(files), **PLAIN_RAY)
    await_text(own, "process 0 is in")
    own.signal(signal.SIGTERM)
    result = own.wait(30).check()
    assert re.search(r"^saved at \d+$", result.stdout, re.M), result.output
    assert "because of SIGTERM at process 0" in result.stdout
    shutil.rmtree(files)  # the user's, not eray's


@pytest.mark.parametrize("hears", [pytest.param("the cluster", marks=pytest.mark.full), "the process"])
def test_up_and_a_process_that_no_supervisor_serves_tell_each_other(laptop: Laptop, hears: str) -> None:
    up = laptop.eray("up", ERAY_DASHBOARD="0")
    await_text(up, "export RAY_ADDRESS=")
    exports = dict(line.removeprefix("export ").split("=", 1) for line in up.output.splitlines() if "export " in line)
    process = laptop.python(STEPS, "--tell", **exports)
    await_text(process, "process 0 is in")
    (up if hears == "the cluster" else process).signal(signal.SIGUSR1)
    assert re.search(r"^saved at \d+$", process.wait(30).check().stdout, re.M)
    await_text(up, "this job is about to end")
    up.signal(signal.SIGINT)
    assert up.wait(15).returncode == 130
