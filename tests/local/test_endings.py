"""Process 2 of three ends badly, while the others wait: its code is the command's, and the command says who and why."""

import re
import time
from pathlib import Path

import pytest
from laptop import Laptop, await_text

pytestmark = [pytest.mark.ray, pytest.mark.jax]

PROGRAM = Path(__file__).parent / "programs" / "ends_badly.py"


full = pytest.mark.full


@pytest.mark.parametrize(
    ("how", "code", "words", "once"),
    [
        ("sys.exit", 7, "ended with code 7", ["about to end"]),
        ("exception", 1, "ended with code 1", ["ValueError: this is wrong"]),
        ("eray's error", 3, "ended with code 3", ["DevicePlanError: node n1: found (devices-overlap); remedy"]),
        ("kill", 137, "was killed (SIGKILL, 137)", ["about to end"]),
        pytest.param("SystemExit with words", 1, "ended with code 1", ["about to end", "no data"], marks=full),
        pytest.param("in a with block", 7, "ended with code 7", ["about to end"], marks=full),
        pytest.param("os._exit", 9, "ended with code 9", ["about to end"], marks=full),
        pytest.param("abort", 134, "aborted (SIGABRT, 134)", ["about to end"], marks=full),
        pytest.param("crash", 139, "crashed (SIGSEGV, 139)", ["about to end"], marks=full),
        pytest.param("terminate", 143, "was asked to end (SIGTERM, 143)", ["about to end"], marks=full),
    ],
)
def test_process_that_ends_badly(laptop: Laptop, how: str, code: int, words: str, once: list[str]) -> None:
    run = laptop.eray(
        "run", "-n", "3", "--", "python", PROGRAM, how, *(["--jax"] if how in ("sys.exit", "kill") else [])
    )
    await_text(run, "about to end")
    began = time.monotonic()
    result = run.wait(20)
    assert time.monotonic() - began < 10.0
    assert result.returncode == code, result.output
    summary = re.search(rf"^eray: process 2 on (\S+) \(pid \d+\) {re.escape(words)}.*", result.stderr, re.M | re.S)
    assert summary, result.output
    of_eray = [line for line in result.stderr.splitlines() if not re.match(r"\[\d\] ", line)]
    others = [line for line in result.stderr.splitlines() if re.match(r"\[[01]\] ", line) and "Traceback" in line]
    assert others == [], "who only hears of it has nothing to add"
    for line in once:
        assert "\n".join(of_eray).count(line) == 1, result.output
    told = laptop.eray("logs").wait(20).check().stdout
    assert re.match(rf"cluster local-\w+, eray run: ended with code {code} at .*\ncause: .*process 2 on ", told), told
    for line in once:
        assert line in told, told


def test_logs_of_a_ray_that_cannot_start_say_why_once_and_not_how_ray_greets(laptop: Laptop) -> None:
    result = laptop.eray("run", "--", "sleep", "60", RAY_gcs_storage="none-such").wait(30)
    assert result.returncode == 4, result.output
    why = "Unsupported GCS storage type: none-such"
    listed, tail = (laptop.eray("logs", *words).wait(20).check().stdout for words in ([], ["--tail", "15"]))
    for told in (listed, tail):
        assert re.search(r"\ncause: .*Ray did not start: ", told), told
        assert told.count(why) == 1, told
        assert "ray stop" not in told
    assert re.search(r"/eray\.log\njob local-\w+: \d+ files of Ray's there, ", listed), listed
