"""What a signal means to a supervisor, and how it hears of one."""

import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from eray._ray.signals import SAME_S, Meaning, Meanings

USR1, USR2, TERM, INT, HUP = (
    int(number) for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
)


@pytest.mark.parametrize(
    ("warnings", "received", "meanings"),
    [
        (("USR1", "USR2"), [(0, USR1), (1, USR1), (2, USR2)], [Meaning.WARNING] * 3),
        (("USR1",), [(0, USR2), (1, USR1)], [Meaning.USERS, Meaning.WARNING]),
        ((), [(0, USR1), (1, TERM), (2, INT)], [Meaning.USERS, Meaning.END, Meaning.END]),
        (("USR1", "USR2"), [(0, TERM), (1, HUP), (2, INT)], [Meaning.END] * 3),
        (("TERM",), [(7, TERM), (7 + SAME_S / 2, TERM)], [Meaning.WARNING, Meaning.AGAIN]),
        (("TERM",), [(7, TERM), (7 + SAME_S, TERM)], [Meaning.WARNING, Meaning.END]),
        (("TERM",), [(0, TERM), (1, INT), (2, USR1)], [Meaning.WARNING, Meaning.END, Meaning.USERS]),
    ],
)
def test_meaning_of_signals(
    warnings: tuple[str, ...], received: list[tuple[float, int]], meanings: list[Meaning]
) -> None:
    known = Meanings(warnings)
    assert [known.of(number, float(now)) for now, number in received] == meanings


LISTENS = """
import asyncio, os, sys
from eray._ray.signals import Signals

async def main():
    def call(what):
        return lambda number: print(what, number, flush=True)
    ended = asyncio.get_running_loop().create_future()
    def act(number):
        call("end")(number)
        ended.done() or ended.set_result(None)
    Signals(act, call("warn"), call("forward"), warnings=["USR1"], led=True)
    print("ready", flush=True)
    await ended

asyncio.run(main())
"""


@pytest.fixture
def listener() -> Iterator["subprocess.Popen[str]"]:
    child = subprocess.Popen(
        [sys.executable, "-c", LISTENS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    )
    assert hear(child) == "ready"
    yield child
    child.kill()
    child.wait()


def hear(child: "subprocess.Popen[str]") -> str:
    assert child.stdout is not None
    return child.stdout.readline().strip()


def test_led_supervisor_takes_the_launchers_numbers_as_signals(listener: "subprocess.Popen[str]") -> None:
    assert listener.stdin is not None
    listener.stdin.write(f"{USR1}\n{USR2}\n")  # at once: they may come in one piece
    assert [hear(listener) for _ in range(3)] == [f"warn {USR1}", f"forward {USR1}", f"forward {USR2}"]
    listener.stdin.write(f"{INT}\n")
    assert hear(listener) == f"end {INT}"
    assert listener.wait(10) == 0


def test_led_supervisor_ends_with_its_launcher(listener: "subprocess.Popen[str]") -> None:
    assert listener.stdin is not None
    listener.stdin.close()
    assert hear(listener) == f"end {TERM}"


def test_signals_of_the_system_are_taken_too(listener: "subprocess.Popen[str]") -> None:
    listener.send_signal(signal.SIGUSR1)
    assert [hear(listener) for _ in range(2)] == [f"warn {USR1}", f"forward {USR1}"]
    listener.send_signal(signal.SIGTERM)
    assert hear(listener) == f"end {TERM}"
