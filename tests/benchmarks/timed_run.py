"""Run one command and note when each event of its start was seen, and how much CPU time had gone by then."""

import os
import re
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass

from cpu_meter import CpuMeter
from ways import Command

STAMP = re.compile(r"(?:\[\d+\] )?stamp (\w+) (\S+) ([\d.]+)\s*$")
LOG = re.compile(r"(\d\d):(\d\d):(\d\d)\.(\d{3}) INFO eray\.\S+: (.*)")
EVENTS = (
    (re.compile(r"starting Ray:"), "supervisor"),
    (re.compile(r"event=all-reported\b"), "rollcall"),
    (re.compile(r"event=gcs-up\b"), "gcs"),
    (re.compile(r"event=raylet-ready\b"), "raylet"),
    (re.compile(r"event=coordinator-up\b"), "coordinator"),
    (re.compile(r"event=world-phase .*phase=forming\b"), "forming"),
    (re.compile(r"event=world-phase .*phase=planned\b"), "planned"),
    (re.compile(r"event=world-phase .*phase=published\b"), "published"),
    (re.compile(r"event=world-phase .*phase=running\b"), "running"),
    (re.compile(r"event=world-phase .*phase=closed\b"), "over"),
    (re.compile(r"event=process-ended\b"), "gone"),
    (re.compile(r"event=cluster-ended\b"), "ending"),
    (re.compile(r"event=node-ended\b"), "cleared"),
)
LIMIT_S = 120.0
LAST_WORDS_S = 2.0


@dataclass(frozen=True)
class Point:
    """When something had happened everywhere: wall seconds since the start, and CPU seconds by then."""

    wall_s: float
    cpu_s: float | None


@dataclass
class TimedRun:
    """One run. ``points`` has the last of each kind of event, in the order of time."""

    code: int
    output: str
    points: dict[str, Point]

    @property
    def succeeded(self) -> bool:
        return self.code == 0 and "collective" in self.points


def run(command: Command, meter: CpuMeter) -> TimedRun:
    """Run a command to its end, 120 seconds at most.

    The clock starts with the command, or where the command prints a stamp ``start`` then (an allocation is granted).
    """
    started, cpu_before = time.time(), meter.read()
    child = subprocess.Popen(
        command.argv,
        env=dict(command.env),
        cwd=command.cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        preexec_fn=lambda: meter.adopt([os.getpid()]),  # safe: no threads here
    )
    seen: dict[str, tuple[float, float | None]] = {}
    lines, collectives = [], 0
    for line in _lines(child):
        lines.append(line)
        event = ("ended", time.time()) if line == "" else _event(line)
        if event is not None and event[0] == "start":
            started, cpu_before = event[1], meter.read()
        elif event is not None:
            name, at = event
            seen[name] = max(seen.get(name, (0.0, None)), (at, meter.read()))
            collectives += name == "collective"
            if collectives == command.enough and name == "collective":
                os.killpg(child.pid, signal.SIGTERM)

    def point(at: float, cpu: float | None) -> Point:
        return Point(at - started, None if cpu is None or cpu_before is None else cpu - cpu_before)

    points = {name: point(*value) for name, value in sorted(seen.items(), key=lambda item: item[1][0])}
    code = child.wait()
    return TimedRun(0 if command.enough and collectives == command.enough else code, "".join(lines), points)


def _lines(child: "subprocess.Popen[bytes]") -> Iterator[str]:
    """Yield what it prints, line by line, and an empty text at its end; then wait for daemons' last words a little."""
    assert child.stdout is not None
    deadline, descriptor, rest = time.monotonic() + LIMIT_S, os.pidfd_open(child.pid), b""
    waiting = [child.stdout.fileno(), descriptor]
    while child.stdout.fileno() in waiting:
        ready = select.select(waiting, [], [], max(deadline - time.monotonic(), 0))[0]
        if not ready:
            if descriptor not in waiting:
                break
            os.killpg(child.pid, signal.SIGKILL)
            deadline = time.monotonic() + LAST_WORDS_S
        if child.stdout.fileno() in ready:
            data = os.read(child.stdout.fileno(), 65_536)
            *whole, rest = (rest + data).split(b"\n")
            yield from (line.decode(errors="replace") + "\n" for line in whole)
            if not data:
                waiting.remove(child.stdout.fileno())
        elif descriptor in ready:
            yield ""
            waiting.remove(descriptor)
            deadline = time.monotonic() + LAST_WORDS_S
    if descriptor in waiting:
        select.select([descriptor], [], [], LAST_WORDS_S)
        yield ""
    os.close(descriptor)
    child.stdout.close()


def _event(line: str) -> tuple[str, float] | None:
    if found := STAMP.match(line):
        return found[1], float(found[3])
    if found := LOG.match(line):
        hour, minute, second, milli, message = found.groups()
        for pattern, name in EVENTS:
            if pattern.match(message):
                return name, _unix(int(hour), int(minute), int(second)) + int(milli) / 1000
    return None


def _unix(hour: int, minute: int, second: int) -> float:
    now = time.localtime()
    at = time.mktime((now.tm_year, now.tm_mon, now.tm_mday, hour, minute, second, 0, 0, -1))
    return at if at < time.time() + 60 else at - 86_400  # seen after midnight
