"""`eray run --max-restarts` on one machine: new processes, a new generation, a budget."""

import re
import signal
from pathlib import Path

import pytest
from laptop import Laptop, await_text, lines_of

pytestmark = [pytest.mark.ray, pytest.mark.jax]
AGAIN = Path(__file__).parent / "programs" / "again.py"


def test_world_starts_again_in_new_processes_with_a_new_port(laptop: Laptop) -> None:
    result = laptop.eray("run", "-n", "2", "--max-restarts", "2", "--", "python", AGAIN, "1", "stale").wait(90)
    assert result.returncode == 0, result.stdout + result.stderr
    lives = [
        re.findall(r"pid (\d+) generation (\d) port (\S+)", "\n".join(lines)) for lines in lines_of(result).values()
    ]
    assert [[life[1] for life in each] for each in lives] == [["1", "2"], ["1", "2"]]
    assert len({life[0] for each in lives for life in each}) == 4, "new operating system processes"
    assert len({life[2] for each in lives for life in each}) == 2, "a port for each generation"
    assert re.search(r"^\[0\] restart 1 1 137 process 1 on \S+ \(pid \d+\) was killed", result.stdout, re.M)
    assert re.search(r"^eray: process 1 on \S+ \(pid \d+\) was killed \(SIGKILL, 137\)", result.stderr, re.M)
    assert re.search(
        r"^eray: the world starts again as generation 2: 2 processes; restart 1 of 2(, [0-9]+ s after the failure)?$",
        result.stderr,
        re.M,
    )
    assert re.search(r"^\[1\] stale 5 eray.errors.StaleGenerationError: .* is of generation 1", result.stdout, re.M)


def test_budget_that_is_used_up_ends_with_the_code_of_the_last_failure(laptop: Laptop) -> None:
    result = laptop.eray("run", "-n", "2", "--max-restarts", "1", "--", "python", AGAIN, "9", "code:7").wait(90)
    assert result.returncode == 7, result.stdout + result.stderr
    assert result.stderr.count("the world starts again") == 1
    assert "generation 2" in result.stdout
    assert "generation 3" not in result.stdout


@pytest.mark.full
def test_healthy_generation_gives_the_budget_back(laptop: Laptop) -> None:
    words = ("run", "-n", "2", "--max-restarts", "1", "--", "python", AGAIN, "2", "late")
    result = laptop.eray(*words, ERAY_HEALTHY_S="1").wait(90)
    assert result.returncode == 0, result.output
    assert result.stderr.count("restart 1 of 1") == 2


@pytest.mark.full
def test_usage_error_of_the_program_is_not_tried_again(laptop: Laptop) -> None:
    result = laptop.eray("run", "-n", "2", "--max-restarts", "3", "--", "python", AGAIN, "9", "code:2").wait(60)
    assert result.returncode == 2
    assert "the world starts again" not in result.stderr


def test_signal_between_generations_ends_the_command(laptop: Laptop) -> None:
    running = laptop.eray("run", "-n", "2", "--max-restarts", "3", "--", "python", AGAIN, "1", "killed")
    await_text(running, "the world starts again")
    running.process.send_signal(signal.SIGTERM)
    assert running.wait(20).returncode == 143
