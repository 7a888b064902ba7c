"""Time the rendezvous: many simulated processes join the real coordinator, beside a bare barrier of as many calls.

    python tests/benchmarks/rendezvous.py [--up-to 10000] [--runs 3] [--drivers 4] [--by-node] [--json FILE]

The bare barrier is an async actor that counts and sets an event: what Ray itself costs for as many blocking calls from
the same drivers. The two take turns, each time in a new actor, the coordinator with its snapshot on disk. Wall time
starts when the first driver sends its first call and ends when the last has its last answer; "last" is the time from
the last report's arrival in the actor to the last answer in a driver. CPU and memory are those of the actor's process,
answers their length as JSON. With ``--by-node`` one call asks for the eight processes of a node, as the head does under
ERAY_ATTACH=demand; the way from the processes to the head is not in it. Always exits 0: it measures, and tests nothing.
"""

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import ray
from crowd import PER_NODE

from eray._core.topology import Phase
from eray._ray.client import CoordinatorClient
from eray._ray.creation import MAX_CONCURRENCY, create_coordinator

HERE = Path(__file__).resolve().parent
SIZES = (16, 256, 1024, 4096, 10_000)
TARGET = 1.5
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Meeting:
    """One run of one way at one size."""

    total_s: float
    last_s: float
    cpu_s: float
    memory_mib: float
    answer_bytes: int


@ray.remote(num_cpus=0, max_concurrency=MAX_CONCURRENCY)
class Barrier:
    """The least that an actor can do: count the callers, and let them go together."""

    def __init__(self) -> None:
        self._here, self._all, self._at = 0, asyncio.Event(), 0.0

    async def arrive(self, world: str, index: int, count: int) -> dict[str, Any]:
        self._here += 1
        if self._here == count:
            self._at = time.time()
            self._all.set()
        await self._all.wait()
        return {"done": True, "process_index": index}

    async def ping(self) -> dict[str, Any]:
        return {"pid": os.getpid(), "at": self._at}


class Crowd:
    """The drivers, and one meeting at a time of what they simulate."""

    def __init__(self, drivers: int, address: str) -> None:
        words = [sys.executable, str(HERE / "crowd.py"), address]
        self._drivers = [
            subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(drivers)
        ]
        self._hear()

    def meet(self, way: str, actor: str, count: int) -> dict[str, float]:
        """Let ``count`` processes meet; return when the first began, when the last ended, and the longest answer."""
        share = -(-count // (len(self._drivers) * PER_NODE)) * PER_NODE  # whole nodes
        for turn, driver in enumerate(self._drivers):
            command = {"way": way, "actor": actor, "world": "main", "count": count}
            command |= {"first": min(turn * share, count), "end": min((turn + 1) * share, count)}
            if command["first"] < command["end"]:
                _stdin(driver).write(json.dumps(command) + "\n")
                _stdin(driver).flush()
        found = self._hear(-(-count // share))
        return {
            "started": min(one["started"] for one in found),
            "ended": max(one["ended"] for one in found),
            "answer_bytes": max(one["answer_bytes"] for one in found),
        }

    def close(self) -> None:
        for driver in self._drivers:
            _stdin(driver).close()
        for driver in self._drivers:
            driver.wait(30)

    def _hear(self, drivers: int | None = None) -> list[dict[str, float]]:
        lines = [driver.stdout.readline() for driver in self._drivers[:drivers] if driver.stdout is not None]
        if not all(lines):
            raise SystemExit("a driver ended; its words stand above")
        return [json.loads(line) for line in lines]


def main() -> None:
    args = _arguments()
    sizes = [size for size in SIZES if args.least <= size <= args.up_to]
    found: dict[str, Any] = {}
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs before; {args.drivers} drivers", flush=True)
    with private_ray() as directory:
        crowd = Crowd(args.drivers, ray.get_runtime_context().gcs_address)
        try:
            way = "join_node" if args.by_node else "join"
            (
                bare(crowd, 64),
                _ours(crowd, 64, directory, args.measured, way),
            )  # so that neither pays for what is done once
            show_head()
            for size in sizes:
                runs = [
                    (bare(crowd, size), _ours(crowd, size, directory, args.measured, way)) for _ in range(args.runs)
                ]
                show(size, runs)
                found[str(size)] = [[asdict(each) for each in pair] for pair in runs]
        finally:
            crowd.close()
    if args.json:
        Path(args.json).write_text(json.dumps(found, indent=1) + "\n")


def show_head() -> None:
    """Print the head of the table."""
    print(f"medians, bare barrier and eray; targets: ratio {TARGET}, answer independent of the size, growth linear")
    print(
        f"{'processes':>9} {'total s':>13} {'ratio':>6} {'last s':>13} {'actor CPU s':>13} {'MiB':>11} {'answer B':>9}"
    )


def show(size: int, runs: Sequence[tuple[Meeting, Meeting]]) -> None:
    """Print one size; the ratio is the median of the pairs', for the machine's load changes between them."""
    bare, ours = [pair[0] for pair in runs], [pair[1] for pair in runs]
    ratio = median(b.total_s / a.total_s for a, b in runs)

    def both(name: str, digits: int) -> str:
        return " ".join(f"{median(getattr(each, name) for each in way):6.{digits}f}" for way in (bare, ours))

    cells = both("total_s", 2), f"{ratio:6.2f}", both("last_s", 2), both("cpu_s", 2), both("memory_mib", 0)[1:]
    print(f"{size:9}", *cells, f"{max(each.answer_bytes for each in ours):9}", flush=True)


@contextmanager
def private_ray() -> Iterator[str]:
    """Start a Ray of this benchmark's own in a private directory, and yield that directory."""
    directory = tempfile.mkdtemp(prefix="eb", dir="/tmp")
    os.environ |= {"HOME": directory, "RAY_AUTH_MODE": "disabled"}
    for name in [name for name in os.environ if name.startswith(("RAY_ADDRESS", "SLURM_", "ERAY_"))]:
        del os.environ[name]
    os.environ["PYTHONPATH"] = str(HERE.parents[1])
    try:
        ray.init(
            num_cpus=2,
            include_dashboard=False,
            _temp_dir=f"{directory}/r",
            namespace="eray",
            log_to_driver=False,
            logging_level="error",
        )
        yield directory
    finally:
        ray.shutdown()
        shutil.rmtree(directory, ignore_errors=True)


def bare(crowd: Crowd, count: int) -> Meeting:
    """Let as many simulated processes meet at a bare barrier."""
    name = f"barrier-{uuid.uuid4().hex}"
    handle = Barrier.options(name=name).remote()  # type: ignore[attr-defined]
    pid = ray.get(handle.ping.remote())["pid"]
    before = cpu_s(pid)
    seen = crowd.meet("meet", name, count)
    spent_s = cpu_s(pid) - before
    return _ended(handle, pid, spent_s, seen, ray.get(handle.ping.remote())["at"])


def new_coordinator(directory: str, measured: bool = False) -> tuple[str, Any]:
    """Create a coordinator that keeps its snapshot in the directory; return its name and handle."""
    name = f"coordinator-{uuid.uuid4().hex}"
    handle = create_coordinator(
        node_id=ray.get_runtime_context().get_node_id(),
        namespace="eray",
        name=name,
        snapshot_path=f"{directory}/{name}.json",
        job={},
        measured=measured,
    )
    return name, handle


def _ours(crowd: Crowd, count: int, directory: str, measured: bool, way: str) -> Meeting:
    name, handle = new_coordinator(directory, measured)
    client = CoordinatorClient(handle)
    pid = client.ping()["pid"]
    before = cpu_s(pid)
    seen = crowd.meet(way, name, count)
    spent_s = cpu_s(pid) - before
    world = client.topology().world("main")
    assert world is not None
    return _ended(handle, pid, spent_s, seen, dict(world.timeline)[Phase.PLANNED])


def _ended(handle: Any, pid: int, spent_s: float, seen: dict[str, float], last: float) -> Meeting:
    found = Meeting(
        total_s=seen["ended"] - seen["started"],
        last_s=seen["ended"] - last,
        cpu_s=spent_s,
        memory_mib=peak_mib(pid),
        answer_bytes=int(seen["answer_bytes"]),
    )
    ray.kill(handle)
    return found


def cpu_s(pid: int) -> float:
    """Return the CPU seconds of a living process, user and system."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def peak_mib(pid: int) -> float:
    """Return the most memory that a living process has had."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmHWM"))) / 1024


def _stdin(driver: "subprocess.Popen[str]") -> Any:
    return driver.stdin


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--from", dest="least", type=int, default=1, metavar="N", help="the smallest world")
    parser.add_argument("--up-to", type=int, default=SIZES[-1], metavar="N", help="the largest world (default: 10000)")
    parser.add_argument("--runs", type=int, default=3, help="runs of each way and size; medians are shown (default: 3)")
    parser.add_argument("--drivers", type=int, default=4, help="how many drivers share the processes (default: 4)")
    parser.add_argument("--measured", action="store_true", help="the coordinator shows its metrics to Ray's agent")
    parser.add_argument("--by-node", action="store_true", help="one call of eray's a node of eight processes")
    parser.add_argument("--json", metavar="FILE", help="write every run there")
    return parser.parse_args()


if __name__ == "__main__":
    main()
