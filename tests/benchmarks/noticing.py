"""Measure what a running world of 1,000 processes costs the coordinator, and how soon a death is known.

    python tests/benchmarks/noticing.py [--processes 1000] [--seconds 30]

Four worlds, one after the other, on the real actor. *supervised*: nobody asks but the head, by one long call; a
supervisor reports the death. *follow*: each process has a call of its own besides, as one without a supervisor does.
*busy*, *idle*: the coordinator watches as many of the user's own actors, which work or which do nothing (here one
actor, watched that many times and killed). CPU is the coordinator's, per second; noticed is the time from the report of
one death, or the kill, to the head's answer, told to the last process's. Then the other deaths are reported, as
supervisors do when a world ends. Always exits 0.
"""

import argparse
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import ray
from crowd import request
from rendezvous import Crowd, cpu_s, new_coordinator, private_ray

from eray._ray.client import CoordinatorClient
from eray.errors import ErayError

DRIVERS = 4
CPU_TARGET, NOTICED_TARGET_S = 0.05, 5.0
SETTLE_S = 5.0


@ray.remote(num_cpus=0)
class Worker:
    """One of the user's own actors."""

    def pid(self) -> int:
        return os.getpid()

    def work(self) -> None:
        signal.pause()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=1000)
    parser.add_argument(
        "--seconds", type=float, default=30.0, help="how long the steady state is measured (default: 30)"
    )
    args = parser.parse_args()
    print(
        f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs before; {args.processes} processes", flush=True
    )
    print(f"targets: {CPU_TARGET:.0%} of a core, a death noticed within {NOTICED_TARGET_S} s")
    with private_ray() as directory:
        address = ray.get_runtime_context().gcs_address
        for kind in ("supervised", "follow", "busy", "idle"):
            measure(kind, args.processes, args.seconds, address, directory)


def measure(kind: str, count: int, seconds: float, address: str, directory: str) -> None:
    """Bring one world to running, leave it alone, kill one process of it, and print what it took."""
    name, handle = new_coordinator(directory)
    client = CoordinatorClient(handle)
    pid = client.ping()["pid"]
    crowd = Crowd(DRIVERS, address)
    head = Head(client)
    with ThreadPoolExecutor(1) as pool:
        living = pool.submit(crowd.meet, "live" if kind == "follow" else "run", name, count)
        head.running.wait()
        worker = watch_actors(handle, count, kind) if kind in ("busy", "idle") else None
        time.sleep(SETTLE_S)
        before, started = cpu_s(pid), time.monotonic()
        time.sleep(seconds)
        share = (cpu_s(pid) - before) / (time.monotonic() - started)
        at = time.time()
        if worker is None:
            client.died("main", 1, count - 1, "signal 9 (killed)", 137)
        else:
            os.kill(worker, signal.SIGKILL)
        head.failed.wait()
        told_s = living.result()["ended"] - at if kind == "follow" else None
    before, began = cpu_s(pid), time.monotonic()
    ray.get([handle.died.remote("main", 1, index, "signal 15", 143) for index in range(count - 1)])
    rest = f"the other deaths {cpu_s(pid) - before:.2f} s of CPU in {time.monotonic() - began:.2f} s"
    told = "" if told_s is None else f", told to all within {told_s:.2f} s"
    print(f"{kind:12} {share:6.2%} of a core; noticed within {head.failed_at - at:.3f} s{told}; {rest}", flush=True)
    crowd.close()
    ray.kill(handle)


def watch_actors(handle: Any, count: int, kind: str) -> int:
    """Have the coordinator watch one actor as often as the world has processes; return its pid."""
    worker = Worker.remote()  # type: ignore[attr-defined]
    pid = int(ray.get(worker.pid.remote()))
    if kind == "busy":
        worker.work.remote()
    for index in range(count):
        asked = request("main", index, count)
        asked["facts"]["pid"] = pid
        ray.get(handle.watch_actor.remote(asked, worker, ray.get_runtime_context().get_node_id()))
    return pid


class Head:
    """What the head's supervisor does: it asks for changes by one long call after the other."""

    def __init__(self, client: CoordinatorClient) -> None:
        self._client = client
        self.running, self.failed, self.failed_at = threading.Event(), threading.Event(), 0.0
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        version = 0
        while not self.failed.is_set():
            try:
                answer = self._client.watch(version)
            except ErayError:
                return
            version = answer["version"]
            for world in answer["worlds"]:
                if world["phase"] == "running":
                    self.running.set()
                if world["failure"] is not None:
                    self.failed_at = time.time()
                    self.failed.set()


if __name__ == "__main__":
    main()
