"""Functions as processes of worlds, on one cluster of `eray up`; each test is a driver of its own."""

import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import Running
from laptop import EXAMPLES, Laptop, await_text, result_of, until

from eray._io import process

pytestmark = [pytest.mark.ray, pytest.mark.jax]

PROGRAM = Path(__file__).parent / "programs" / "launches.py"
Launch = Callable[..., Any]


@pytest.fixture(scope="module")
def exports() -> Iterator[dict[str, str]]:
    """How a driver reaches the cluster."""
    here = Laptop.make()
    try:
        up = here.eray("up", ERAY_DASHBOARD="0")
        await_text(up, "export RAY_ADDRESS=")
        lines = [line for line in up.output.splitlines() if line.startswith("export ")]
        yield dict(line.removeprefix("export ").split("=", 1) for line in lines)
        up.signal(15)
        assert up.wait(15).returncode == 143, up.output
        here.require_clean()
    finally:
        here.clear()


@pytest.fixture
def start(laptop: Laptop, exports: dict[str, str]) -> Callable[..., Running]:
    return lambda *words: laptop.python(PROGRAM, *words, **exports)


@pytest.fixture
def run(start: Callable[..., Running], laptop: Laptop) -> Launch:
    """Run one scenario and return what it says; its files are removed."""

    def scenario(*words: str, timeout_s: float = 90) -> Any:
        result = start(*words).wait(timeout_s).check()
        assert "Unhandled error" not in result.output, "Ray prints the errors that nobody asks for"
        for file in (laptop.root / "work").iterdir():
            file.unlink()
        return result_of(result)

    return scenario


def test_launch_returns_results_by_process_index(run: Launch) -> None:
    found = run("results")
    for index, said in enumerate(found["said"]):
        assert said["index"] == [index, index]
        assert said["arguments"] == ["first", "second"]
        assert (said["gathered"], said["devices"], said["generation"], said["same"]) == ([0, 1], [2, 4], 1, True)
    assert found["sum"] == sum(range(1_000_000))
    assert found["gone"] == [True, True]


def test_launch_raises_what_the_program_raised(run: Launch) -> None:
    found = run("failures")
    raised = found["raised"]
    assert {"KeyError", "RayTaskError"} <= set(raised["types"])
    assert "no such layer" in raised["text"]
    assert "failed: process 1 on " in raised["notes"]
    assert "the last words of 1" in raised["notes"]
    assert ":job_id:" not in raised["notes"]
    assert "as_instanceof_cause" not in raised["trace"], "frames in which it arrived"
    files = re.findall(r'File ".*/(\S+\.py)"', raised["trace"])
    assert (files.count("_door.py"), set(files)) == (1, {"launches.py", "_door.py"})
    assert "KeyError" in found["all"]["types"]
    assert "RuntimeError" in found["exit"]["types"]
    assert "the program exits with 3" in found["exit"]["text"]
    assert found["exit_0"] == [None]
    assert "ResultError" in found["result"]["types"]
    assert "process 0 returned lock, which cannot be sent to the driver" in found["result"]["text"]
    assert "raise Odd\nOdd: odd" in found["odd"]["text"], "its class cannot be had, but its words can"


def test_killed_process_ends_its_world_at_once(run: Launch) -> None:
    found = run("killed")
    assert "WorldFailedError" in found["error"]["types"]
    assert (
        f"process 1 on {found['cause'].split()[3]} (pid {found['pid']}) ended without a word" in found["error"]["text"]
    )
    assert found["after_s"] < 5
    assert (found["gone"], found["groups"]) == ([True, True], [])
    assert found["states"] == ["dead", "dead"]
    assert found["cause"].startswith("process 1 on ")


def test_world_is_started_again_as_the_next_generation(run: Launch) -> None:
    found = run("restarts")
    assert found["said"] == [[2, 0, "2"], [2, 1, "2"]]
    (restart,) = found["restarts"]
    assert (restart["generation"], restart["process_index"]) == (1, 1)
    assert "UsageError" in found["usage"]["types"]
    assert "generation 1" in found["usage"]["notes"]


def test_what_cannot_be_placed_or_sent_is_said(run: Launch) -> None:
    found = run("placement")
    assert "PlacementError" in found["too much"]["types"]
    assert found["too much"]["took_s"] < 5
    assert "the cluster cannot hold processes with 1000 CPUs each, 1 on each node: " in found["too much"]["text"]
    assert found["too few nodes"]["text"] == "min_nodes=2: the cluster has only 1 node for these processes"
    assert "UsageError" in found["too few nodes"]["types"]
    assert "no room for processes with 0.25 CPUs each, 1 in all within 1.5 s: " in found["held"]["text"]
    assert " has 0 of " in found["held"]["text"]
    assert "fn of type function cannot be sent" in found["pickle"]["text"]
    assert "args[0] of type lock cannot be sent" in found["argument"]["text"]
    assert "/no/such/place" in found["environment"]["text"]
    ((kind, text),) = found["inside"]
    assert kind == "ConnectionStateError"
    assert "launch() in process 0 of world 'launch-" in text
    assert found["groups"] == []


@pytest.mark.full
def test_what_is_waited_for_is_said(start: Callable[..., Running]) -> None:
    said = start("waits").wait(90).check().stderr
    share = "processes with 0.25 CPUs each, 2 in all"
    assert re.search(rf"^eray: waiting for room for {share}, 1\d s: \S+ has 0 of \S+ CPUs free$", said, re.M), said
    assert re.search(r"^eray: world 'slow': waiting for process [01] \(\S+\) to join, 1\d s$", said, re.M), said


def test_two_worlds_run_side_by_side(run: Launch) -> None:
    assert run("side_by_side") == {"a": ["a"], "b": ["b"]}


@pytest.mark.full
@pytest.mark.parametrize("count", [5, pytest.param(20, marks=pytest.mark.full)])
def test_launches_one_after_another_leave_nothing(run: Launch, count: int) -> None:
    found = run("one_after_another", str(count), timeout_s=150)
    assert (found["pids"], found["left"], found["groups"]) == (count, [], [])
    assert len(found["worlds"]) <= 64
    assert found["worlds"][-count:] == ["closed"] * count


def test_interrupt_ends_the_processes(start: Callable[..., Running], laptop: Laptop) -> None:
    driver = start("interrupted")
    files = [laptop.root / "work" / f"pid.{index}" for index in range(2)]
    until(lambda: all(file.exists() for file in files) or None, 60, lambda: f"both processes:\n{driver.output}")
    pids = [int(file.read_text()) for file in files]
    driver.interrupt()
    assert result_of(driver.wait(20).check()) == {"groups": []}
    assert [pid for pid in pids if process.is_alive(pid)] == []
    for file in files:
        file.unlink()


@pytest.mark.full
def test_killed_driver_takes_its_world_with_it(start: Callable[..., Running], laptop: Laptop) -> None:
    driver = start("interrupted")
    files = [laptop.root / "work" / f"pid.{index}" for index in range(2)]
    until(lambda: all(file.exists() for file in files) or None, 60, lambda: f"both processes:\n{driver.output}")
    pids = [int(file.read_text()) for file in files]
    driver.signal(signal.SIGKILL)
    until(lambda: not any(process.is_alive(pid) for pid in pids) or None, 5.0, "the end of the processes")
    for file in files:
        file.unlink()
    assert result_of(start("last_world").wait(60).check()) == ["failed", "dead", "dead"]


@pytest.mark.full
def test_example_runs_alone_with_a_ray_of_its_own(laptop: Laptop) -> None:
    result = laptop.python(EXAMPLES / "launch.py", "--processes", "2", "--devices", "2").wait(60).check()
    assert "the sum over 2 processes and 4 devices is right: 6" in result.stdout
    assert "process 1 of 2" in result.output
