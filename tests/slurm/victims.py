"""Find the processes of a world on the rig's nodes, and kill them as the kernel does."""

import os
import re
import signal
import time
from collections.abc import Iterable

from rig_processes import Process
from slurm_rig import Rig

VICTIMS = {
    "process": r"^\S*python\S* programs/",
    "elastic": r"^\S*python\S* examples/elastic_train",
    "supervisor": r"^\S*python\S* -P -m eray (node|run --led|up --led)",
    "raylet": r"^\S*/raylet ",
    "gcs": r"^\S*/gcs_server ",
    "ray start": r"^\S*python\S* -P -m eray._ray.ray_start ",
    "coordinator": r"^ray::Coordinator",
    "idle worker": r"^ray::IDLE",
    "guard": r"_io/guard\.py",
}
LAUNCHER = re.compile(r"(^|/)srun |bin/eray (run|up)\b")
"""What stays until Slurm itself says that a step is over; the batch script's own side of eray."""


def job_of(process: Process) -> str | None:
    """Return the job in whose control group a process is."""
    try:
        with open(f"/proc/{process.host_pid}/cgroup") as file:
            found = re.search(r"/job_(\d+)/", file.read())
    except OSError:
        return None
    return found[1] if found else None


def processes_of(rig: Rig, node: str, kind: str, job: str | None = None) -> list[Process]:
    """Return the processes of a kind on a node, of one job or of any."""
    found = [each for each in rig.processes(node) if re.search(VICTIMS[kind], each.cmdline)]
    return [each for each in found if job in (None, job_of(each))]


def victim(rig: Rig, node: str, kind: str) -> Process:
    """Return the one process of a kind on a node."""
    found = processes_of(rig, node, kind)
    assert len(found) == 1, [each.cmdline for each in found]
    return found[0]


def kill(process: Process, number: int = signal.SIGKILL) -> float:
    """Send a signal, and return when."""
    now = time.monotonic()
    os.kill(process.host_pid, number)
    return now


def survivors(rig: Rig, nodes: Iterable[str], job: str | None = None) -> list[str]:
    """Return what lives of eray and Ray on these nodes, of one job or of any, but for the launcher's side of a step."""
    return [
        f"{node}: {each.pid} {each.cmdline}"
        for node in nodes
        for each in rig.processes(node)
        if each.belongs_to_eray_or_ray and not LAUNCHER.search(each.cmdline) and job in (None, job_of(each))
    ]


def secrets_left(rig: Rig) -> list[str]:
    """Return what can still be read of a token in the run directories that were left."""
    readable = "for path in /tmp/eray-*/*/token; do cat $path >/dev/null 2>&1 && echo $path; done"
    return [f"{node}: {path}" for node in rig.nodes for path in rig.exec(node, readable).stdout.split()]
