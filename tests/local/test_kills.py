"""Ctrl-C, SIGTERM, and SIGKILL of whatever a run consists of."""

import os
import re
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from commands import Running
from laptop import Laptop, await_text, lines_of, result_of, until

pytestmark = [pytest.mark.ray, pytest.mark.jax]

PROGRAMS = Path(__file__).parent / "programs"


def start_world(laptop: Laptop, program: str, *words: str, processes: int = 2) -> Running:
    run = laptop.eray("run", "-n", str(processes), "--", "python", PROGRAMS / program, *words)
    for index in range(processes):
        await_text(run, f"process {index} is in")
    return run


@pytest.mark.parametrize(
    ("number", "code"), [pytest.param(signal.SIGINT, 130, marks=pytest.mark.full), (signal.SIGTERM, 143)]
)
def test_signal_ends_everything(laptop: Laptop, number: int, code: int) -> None:
    run = start_world(laptop, "saves_on_sigterm.py", "--jax")
    began = time.monotonic()
    run.signal(number)
    result = run.wait(10)
    assert time.monotonic() - began < 8.0  # 3 s where nothing else runs
    assert result.returncode == code, result.output
    for index in range(2):
        assert f"[{index}] saved\n" in result.stdout
    assert "SIGTERM received" not in result.output  # no stacks of absl's


def test_interrupt_while_ray_starts(laptop: Laptop) -> None:
    run = laptop.eray("run", "-n", "1", "--", "python", PROGRAMS / "stay.py", "/never")
    laptop.pid_of("gcs_server")
    run.signal(signal.SIGINT)
    assert run.wait(10).returncode == 130


def test_killed_run_leaves_nothing(laptop: Laptop) -> None:
    run = start_world(laptop, "stay.py", "/never", "--jax")
    os.kill(run.process.pid, signal.SIGKILL)
    assert run.wait().returncode == -signal.SIGKILL
    until(lambda: not laptop.processes() or None, 5.0, lambda: f"the end of {laptop.processes()}")
    until(lambda: laptop.files() == [] or None, 5.0, lambda: f"the removal of {laptop.files()}")
    seen = laptop.eray("status").wait()
    assert (seen.returncode, " was killed: its process is gone from this machine" in seen.stderr) == (4, True), (
        seen.output
    )


PROGRAM_OF = {"raylet": "raylet/raylet ", "gcs_server": "gcs/gcs_server ", "ray start": "start --block "}


@pytest.mark.parametrize("name", ["raylet", "gcs_server", pytest.param("ray start", marks=pytest.mark.full)])
def test_cluster_that_is_lost_ends_the_run(laptop: Laptop, name: str) -> None:
    run = start_world(laptop, "stay.py", "/never")
    os.kill(laptop.pid_of(PROGRAM_OF[name]), signal.SIGKILL)
    result = run.wait(15)
    assert result.returncode == 4, result.output
    name = "(ray start|raylet|gcs_server)" if name == "ray start" else name  # it takes the others along
    assert re.search(rf"^eray: {name} of node \S+ ended", result.stderr, re.MULTILINE), result.stderr
    kept = re.search(r"^eray: the logs of node \S+ are in (\S+)$", result.stderr, re.MULTILINE)
    assert kept, result.stderr
    assert (Path(kept[1]) / "raylet.out").stat().st_size


def test_coordinator_that_dies_comes_back(laptop: Laptop, tmp_path: Path) -> None:
    run = start_world(laptop, "stay.py", str(tmp_path / "end"))
    os.kill(laptop.pid_of("ray::Coordinator"), signal.SIGKILL)
    (tmp_path / "end").touch()  # the processes meet, leave, and the world closes, by the new coordinator
    result = run.wait(30).check()
    assert result.stdout.count("epoch 2: running on 1 node\n") == 2


@pytest.mark.parametrize("attach", [pytest.param("connect", marks=pytest.mark.full), "demand"])
def test_coordinator_killed_all_along_the_way_loses_nothing(laptop: Laptop, tmp_path: Path, attach: str) -> None:
    words = ("run", "-n", "2", "--", "python", PROGRAMS / "kills_the_coordinator.py", tmp_path)
    run = laptop.eray(*words, ERAY_ATTACH=attach)
    for index in range(2):
        await_text(run, f"process {index} is up")
    first = laptop.pid_of("ray::Coordinator")
    os.kill(first, signal.SIGKILL)  # before anyone has joined
    (tmp_path / "start-0").touch()
    await_text(run, "missing process 1")
    second = laptop.pid_of("ray::Coordinator")
    assert second != first
    os.kill(second, signal.SIGKILL)  # between two joins
    (tmp_path / "start-1").touch()
    result = run.wait(60).check()
    assert lines_of(result)[1][-1] == "epoch 6, generation 1", result.output


@pytest.mark.parametrize("name", ["raylet", "gcs_server"])
def test_daemon_that_is_killed_while_ray_starts_is_noticed(laptop: Laptop, name: str) -> None:
    run = laptop.eray("run", "-n", "2", "--", "python", PROGRAMS / "stay.py", "/never")
    os.kill(laptop.pid_of(PROGRAM_OF[name]), signal.SIGKILL)
    result = run.wait(15)
    assert result.returncode == 4, result.output
    assert re.search(rf"^eray: .*({name} of node \S+ ended|`ray start` ended)", result.stderr, re.MULTILINE), result


MEMORY_GIB = 2
GROUPS = {"memory.max": "/sys/fs/cgroup", "memory.limit_in_bytes": "/sys/fs/cgroup/memory"}


@contextmanager
def memory_group(limit: int) -> Iterator[Path]:
    """Make a control group with so many bytes; of version 2 or 1, as this machine has them."""
    name, root = next((name, Path(root)) for name, root in reversed(GROUPS.items()) if os.path.isdir(root))
    group = root / f"eray-test-{os.getpid()}"
    group.mkdir()
    try:
        (group / name).write_text(str(limit))
        yield group
    finally:
        until(lambda: (group / "cgroup.procs").read_text() == "" or None, 10.0, "the group to be empty")
        group.rmdir()


@pytest.mark.skipif(not os.access("/sys/fs/cgroup", os.W_OK), reason="control groups need root: run as root")
def test_process_that_the_kernel_killed_for_memory_is_told_as_such(laptop: Laptop) -> None:
    with memory_group(MEMORY_GIB * 2**30) as group:
        within = ["sh", "-euc", f'echo $$ >{group}/cgroup.procs; exec "$@"', "sh"]
        result = laptop.eray("run", "-n", "2", "--", "python", PROGRAMS / "hogs.py", within=within).wait(60)
    assert result.returncode == 137, result.output
    words = r"was killed by the kernel \(SIGKILL, 137\): its control group ran out of memory \(at most 2\.0 GiB\)"
    assert re.search(rf"^eray: process 1 on \S+ \(pid \d+\) {words}; raise the limit of", result.stderr, re.M)


@pytest.mark.full
@pytest.mark.skipif(not os.access("/sys/fs/cgroup", os.W_OK), reason="control groups need root: run as root")
def test_launched_process_that_the_kernel_killed_for_memory_is_told_as_such(laptop: Laptop) -> None:
    with memory_group(MEMORY_GIB * 2**30) as group:
        within = ["sh", "-euc", f'echo $$ >{group}/cgroup.procs; exec "$@"', "sh"]
        driver = laptop.start([*within, sys.executable, PROGRAMS / "launches.py", "out_of_memory"])
        found = result_of(driver.wait(60).check())
    assert "WorldFailedError" in found["types"]
    assert "was killed by the kernel (SIGKILL, 137): its control group ran out of memory" in found["text"]
