"""Read from the host's /proc what runs on the rig's nodes, which are PID namespaces of it."""

import os
import pwd
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ERAY_OR_RAY = re.compile(
    r"(^|/)(raylet|gcs_server)( |$)|^ray::|-m (eray|ray)\b|/ray/(_private|autoscaler|core|dashboard|scripts|util)/"
    r"|(^|[/ ])eray( |$)|/eray/_io/guard\.py|\b(examples|programs)/\w+\.py"
)


@dataclass(frozen=True)
class Process:
    """One living process: ``host_pid`` as the host sees it, ``pid`` as its own namespace does."""

    pid: int
    user: str
    cmdline: str
    host_pid: int
    started: float  # seconds since the machine started

    @property
    def belongs_to_eray_or_ray(self) -> bool:
        return bool(ERAY_OR_RAY.search(self.cmdline))


def pid_namespace(host_pid: int) -> str:
    """Return the identity of a process's PID namespace."""
    return os.readlink(f"/proc/{host_pid}/ns/pid")


def processes_in(namespace: str) -> Iterator[Process]:
    """Yield the living processes of a PID namespace; kernel threads and zombies are left out."""
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            if pid_namespace(int(name)) == namespace and (process := _read(int(name))):
                yield process
        except OSError:
            continue  # it ended while we looked, or it is closed even to root and so none of the rig's


def has_in_environment(host_pid: int, assignment: str) -> bool:
    """Tell whether a process was started with this ``NAME=value``."""
    try:
        with open(f"/proc/{host_pid}/environ", "rb") as file:
            return assignment.encode() in file.read().split(b"\0")
    except OSError:
        return False


def is_below(host_pid: int, directory: Path) -> bool:
    """Tell whether a process's working directory is ``directory`` or below it."""
    try:
        return Path(os.readlink(f"/proc/{host_pid}/cwd")).is_relative_to(directory)
    except OSError:
        return False


def _read(host_pid: int) -> Process | None:
    with open(f"/proc/{host_pid}/cmdline", "rb") as file:
        cmdline = file.read().replace(b"\0", b" ").decode(errors="replace").strip()
    if not cmdline:
        return None
    with open(f"/proc/{host_pid}/status") as file:
        status = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    with open(f"/proc/{host_pid}/stat") as file:
        ticks = int(file.read().rpartition(")")[2].split()[19])
    pid, uid = int(status["NSpid"].split()[-1]), int(status["Uid"].split()[0])
    try:
        user = pwd.getpwuid(uid).pw_name
    except KeyError:
        user = str(uid)
    return Process(pid, user, cmdline, host_pid, ticks / os.sysconf("SC_CLK_TCK"))
