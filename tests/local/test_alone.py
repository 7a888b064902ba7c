"""A lone process with a Ray of its own, and how it ends."""

import os
import signal

import pytest
from laptop import Laptop, await_text, until

pytestmark = [pytest.mark.ray, pytest.mark.jax]

WAITS = """
import signal, sys, time, eray
conn = eray.connect(jax="--jax" in sys.argv)
print("in", flush=True)
try:
    while True:
        time.sleep(0.1)
        conn.topology()
finally:
    print("cleared", flush=True)
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGKILL, -signal.SIGKILL), (signal.SIGINT, 130)])
def test_signal_ends_the_program_and_its_ray(laptop: Laptop, number: int, code: int) -> None:
    program = laptop.python("-c", WAITS, "--jax")
    await_text(program, "in\n")
    program.signal(number)
    result = program.wait(15)
    assert result.returncode == code, result.output
    assert ("cleared\n" in result.stdout) == (number == signal.SIGINT)
    until(lambda: not laptop.processes() or None, 8.0, lambda: f"the end of {laptop.processes()}")
    until(lambda: laptop.files() == [] or None, 2.0, lambda: f"the removal of {laptop.files()}")


def test_exception_is_told_once_and_kept(laptop: Laptop) -> None:
    result = laptop.python("-c", "import eray; eray.connect(jax=False); raise ValueError('no data')").wait(30)
    assert (result.returncode, result.output.count("no data")) == (1, 1), result.output
    until(lambda: not laptop.processes() or None, 8.0, lambda: f"the end of {laptop.processes()}")
    seen = laptop.eray("status").wait().check().stdout
    assert ", eray.connect(): failed at " in seen, seen
    assert "raised ValueError: no data" in seen, seen


def test_killed_supervisor_is_told_and_the_next_call_raises(laptop: Laptop) -> None:
    program = laptop.python("-c", WAITS)
    await_text(program, "in\n")
    os.kill(laptop.pid_of("-m eray node"), signal.SIGKILL)
    result = program.wait(30)
    assert result.returncode in (4, 5), result.output
    assert "its supervisor is gone" in result.stderr
    assert "cleared\n" in result.stdout
    until(lambda: not laptop.processes() or None, 8.0, lambda: f"the end of {laptop.processes()}")
    until(lambda: laptop.files() == [] or None, 2.0, lambda: f"the removal of {laptop.files()}")
