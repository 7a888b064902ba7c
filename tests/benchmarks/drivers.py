"""Measure what one more driver costs Ray itself: its GCS and the raylet of its node.

    python tests/benchmarks/drivers.py [--drivers 48] [--beside 4] [--idle 10]

A world has a driver a process, or one a cluster with ERAY_ATTACH=demand. Here that many drivers attach, a few at a
time, each finds a detached actor and calls it once, as a process that joins does, and stays. What GCS and raylet spent
on them, and hold for them, is told a driver: CPU while they attach and join, CPU a second when they do nothing, memory,
open files. Always exits 0: it measures, and tests nothing.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import ray
from rendezvous import Barrier, cpu_s, private_ray

DRIVER = """
import sys
import ray

ray.init(sys.argv[1], namespace="eray", log_to_driver=False, logging_level="error")
ray.get(ray.get_actor("barrier").ping.remote())
print("up", flush=True)
sys.stdin.read()
"""
DAEMONS = ("gcs_server", "raylet")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--drivers", type=int, default=48)
    parser.add_argument("--beside", type=int, default=4, help="how many attach at a time (default: 4)")
    parser.add_argument("--idle", type=float, default=10.0, metavar="S", help="how long nothing happens (default: 10)")
    args = parser.parse_args()
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs before; {args.drivers} drivers", flush=True)
    with private_ray() as directory:
        barrier = Barrier.options(name="barrier").remote()  # type: ignore[attr-defined]
        ray.get(barrier.ping.remote())
        pids = dict(daemons(directory))
        started: list[subprocess.Popen[str]] = []
        try:
            attach(args.beside, started)  # what is done once
            idle = idle_cpu(pids, args.idle)
            before = {name: (cpu_s(pid), memory_mib(pid), open_files(pid)) for name, pid in pids.items()}
            for _ in range(args.drivers // args.beside):
                attach(args.beside, started)
            after = {name: (cpu_s(pid), memory_mib(pid), open_files(pid)) for name, pid in pids.items()}
            busy = idle_cpu(pids, args.idle)
        finally:
            for driver in started:
                driver.communicate()
    count = args.drivers // args.beside * args.beside
    for name in DAEMONS:
        cpu, memory, files = (b - a for a, b in zip(before[name], after[name], strict=True))
        print(
            f"{name:12} a driver: {1000 * cpu / count:6.1f} ms of CPU to attach and join, "
            f"{1000 * (busy[name] - idle[name]) / count:5.2f} ms a second then, "
            f"{memory / count:5.2f} MiB, {files / count:4.1f} open files",
            flush=True,
        )


def attach(count: int, started: list[subprocess.Popen[str]]) -> None:
    """Let so many drivers attach beside each other."""
    address, pipe = ray.get_runtime_context().gcs_address, subprocess.PIPE
    new = [
        subprocess.Popen([sys.executable, "-c", DRIVER, address], stdin=pipe, stdout=pipe, text=True)
        for _ in range(count)
    ]
    started += new
    for driver in new:
        assert driver.stdout is not None
        if not driver.stdout.readline():
            raise SystemExit("a driver ended; its words stand above")


def daemons(directory: str) -> Iterator[tuple[str, int]]:
    """Yield Ray's daemons that keep their files in a directory."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            words = (entry / "cmdline").read_bytes().split(b"\0")
            name = os.path.basename(words[0]).decode()
            if name in DAEMONS and any(directory.encode() in word for word in words):
                yield name, int(entry.name)


def idle_cpu(pids: dict[str, int], seconds: float) -> dict[str, float]:
    """Return CPU seconds a second while nothing happens."""
    before = {name: cpu_s(pid) for name, pid in pids.items()}
    time.sleep(seconds)
    return {name: (cpu_s(pid) - before[name]) / seconds for name, pid in pids.items()}


def memory_mib(pid: int) -> float:
    """Return the memory that a process has to itself."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_")) / 1024


def open_files(pid: int) -> int:
    """Return how many descriptors a process has open."""
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


if __name__ == "__main__":
    main()
