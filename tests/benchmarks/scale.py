"""Measure how a cluster grows: the real coordinator and the head's real lines, with simulated nodes of eight processes.

    python tests/benchmarks/scale.py [--sizes 64,1024,10000] [--drivers 4] [--idle 10] [--json FILE]

For each size, one after the other on one coordinator: all nodes dial the head's beacon and prove themselves; they are
added; a world is declared; its processes join over their nodes' lines (ERAY_ATTACH=demand) and report that they run;
one of them dies, and all join again as the next generation; status is asked for and shown; then nothing happens for
some seconds. In the same run as many processes meet at a bare barrier, each by a call of its own (``rendezvous.py``
has their joins by such calls). The head's part runs in this process: listening, relaying, the calls to the coordinator.
"last" is how long the one that waited longest waited. Memory is the most so far. Always exits 0: it measures, and
tests nothing.
"""

import argparse
import asyncio
import json
import os
import resource
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ray
from crowd import PER_NODE
from node_crowd import KEY, credentials
from rendezvous import HERE, Crowd, bare, cpu_s, new_coordinator, peak_mib, private_ray

from eray._core.naming import LOOPBACK
from eray._core.picture import NodeView, Picture
from eray._core.topology import Topology
from eray._io import beacon
from eray._io.channel import Channel
from eray._ray.client import CoordinatorClient
from eray._ray.together import ask_together
from eray._show.status import status_text

SIZES = "64,1024,10000"
TARGET = 0.5
NODE_TIMEOUT_S = 5.0


class Head:
    """What the head's supervisor does for other nodes: it listens, and asks the coordinator for them."""

    def __init__(self, token: str) -> None:
        self._token, self.handle = token, None
        self.lines: set[Channel] = set()
        self._asking: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self._server = asyncio.run_coroutine_threadsafe(
            beacon.listen(LOOPBACK, [0], credentials(token), handler=self._serve), self._loop
        ).result()
        self.port = self._server.port

    def close(self) -> None:
        """Hang up on all nodes."""
        asyncio.run_coroutine_threadsafe(self._server.close(), self._loop).result()

    async def _serve(self, channel: Channel) -> None:
        channel.notice_silence(NODE_TIMEOUT_S)
        await channel.receive()
        self.lines.add(channel)
        while True:
            message = await channel.receive()
            task = asyncio.get_running_loop().create_task(self._answer(channel, message))
            self._asking.add(task)
            task.add_done_callback(self._asking.discard)

    async def _answer(self, channel: Channel, message: dict[str, Any]) -> None:
        await channel.send(await ask_together(self.handle, message))


class NodeCrowd:
    """Processes that simulate nodes, and one step of all of them at a time."""

    def __init__(self, drivers: int, nodes: int, port: int, token: str) -> None:
        share = -(-nodes // drivers)
        words = [sys.executable, str(HERE / "node_crowd.py"), str(port), token]
        self._drivers = [
            subprocess.Popen(
                [*words, str(first), str(min(first + share, nodes))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for first in range(0, nodes, share)
        ]

    def dialled(self) -> float:
        """Return how long, in seconds, all took to dial."""
        return self._hear()

    def step(self, way: str, count: int, generation: int) -> float:
        """Let all processes join, or report that they run; return how long that took in seconds."""
        command = {"way": way, "world": "main", "count": count, "generation": generation}
        for driver in self._drivers:
            assert driver.stdin is not None
            driver.stdin.write(json.dumps(command) + "\n")
            driver.stdin.flush()
        return self._hear()

    def close(self) -> None:
        """End them."""
        for driver in self._drivers:
            driver.kill()
            driver.wait()

    def _hear(self) -> float:
        lines = [driver.stdout.readline() for driver in self._drivers if driver.stdout is not None]
        if not all(lines):
            raise SystemExit("a process that simulates nodes ended; its words stand above")
        found = [json.loads(line) for line in lines]
        return float(max(one["ended"] for one in found) - min(one["started"] for one in found))


class Meter:
    """CPU seconds of the coordinator and of this process, which is the head, and what each step took."""

    def __init__(self, pid: int) -> None:
        self._pid, self.found = pid, dict[str, dict[str, float]]()

    @contextmanager
    def step(self, name: str) -> Iterator[Callable[[float], None]]:
        """Measure a step, by the wall unless the body says how long it took."""
        told: list[float] = []
        before, own, began = cpu_s(self._pid), time.process_time(), time.monotonic()
        yield told.append
        wall = told[0] if told else time.monotonic() - began
        spent = {"wall_s": wall, "actor_cpu_s": cpu_s(self._pid) - before, "head_cpu_s": time.process_time() - own}
        self.found[name] = spent
        print(f"  {name:34} {wall:8.2f} {spent['actor_cpu_s']:9.2f} {spent['head_cpu_s']:9.2f}", flush=True)


def main() -> None:
    args = _arguments()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs before; {args.drivers} processes simulate")
    found = {}
    with private_ray() as directory:
        crowd = Crowd(args.drivers, ray.get_runtime_context().gcs_address)
        try:
            bare(crowd, 64)  # what is done once
            for size in map(int, args.sizes.split(",")):
                found[str(size)] = measure(size, crowd, directory, args)
        finally:
            crowd.close()
    if args.json:
        Path(args.json).write_text(json.dumps(found, indent=1) + "\n")


def measure(count: int, crowd: Crowd, directory: str, args: argparse.Namespace) -> dict[str, Any]:
    """Take one size through all steps."""
    node_count = -(-count // PER_NODE)
    print(f"\n{count:,} processes on {node_count:,} nodes")
    print(f"  {'':34} {'wall s':>8} {'actor CPU':>9} {'head CPU':>9}")
    token = secrets.token_hex()
    head = Head(token)
    _, handle = new_coordinator(directory)
    head.handle, client = handle, CoordinatorClient(handle)
    pid = int(client.ping()["pid"])
    meter = Meter(pid)
    try:
        with meter.step("nodes dial and prove themselves") as took:
            nodes = NodeCrowd(args.drivers, node_count, head.port, token)
            took(nodes.dialled())
        with meter.step("nodes are added"):
            ray.get([handle.add_node.remote(node_fields(rank)) for rank in range(node_count)])
        for generation in (1, 2):
            named = "" if generation == 1 else " again"
            with meter.step(f"world declared{named}"):
                client.declare_world("main", count, generation=generation, layout=layout(count))
            with meter.step(f"all joined{named}") as took:
                took(nodes.step("join", count, generation))
            with meter.step(f"all run{named}") as took:
                took(nodes.step("run", count, generation))
            if generation == 1:
                with meter.step("one death told"):
                    client.died("main", 1, count - 1, "signal 9 (killed)", 137)
        with meter.step("status: the coordinator is asked"):
            topology, noted = ray.get([handle.topology.remote(), handle.notes.remote()])
        with meter.step("status: a picture is made and shown"):
            text = status_text(shown(topology, noted))
        with meter.step(f"{args.idle:g} s in which nothing happens"):
            time.sleep(args.idle)
        ratio = meter.found["all joined"]["wall_s"] / (barrier := bare(crowd, count)).total_s
        print(
            f"  bare barrier of {count:,} calls {barrier.total_s:.2f} s; joined in {ratio:.2f} of it (target {TARGET})"
        )
        about = {"actor_mib": peak_mib(pid), "head_mib": peak_mib(os.getpid()), "ratio": ratio}
        about |= {"topology_bytes": len(json.dumps(topology)), "status_characters": len(text)}
        print(
            f"  memory {about['actor_mib']:.0f} MiB actor, {about['head_mib']:.0f} MiB head; topology as JSON", end=" "
        )
        print(f"{about['topology_bytes'] / 1e6:.2f} MB, shown in {about['status_characters']:,} characters", flush=True)
        nodes.close()
    finally:
        head.close()
        ray.kill(handle)
    return {"steps": meter.found, **about}


def layout(count: int) -> list[tuple[int, int, int, str]]:
    """Return the places of the processes, eight a node."""
    places = (divmod(index, PER_NODE) for index in range(count))
    return [(node, local, min(PER_NODE, count - node * PER_NODE), f"node{node:04}") for node, local in places]


def node_fields(rank: int) -> dict[str, Any]:
    """Return a node with eight GPUs, as its supervisor tells of it."""
    return {
        "node_rank": rank,
        "name": f"node{rank:04}",
        "hostname": f"node{rank:04}.cluster.site",
        "address": f"10.{rank // 65536}.{rank // 256 % 256}.{rank % 256}",
        "ray_node_id": f"{rank:056x}",
        "devices": [{"ordinal": device, "token": str(device)} for device in range(PER_NODE)],
        "cpus": 64,
        "memory_bytes": 512 << 30,
    }


def shown(topology: dict[str, Any], noted: dict[str, Any]) -> Picture:
    """Return the picture that the head would send."""
    seen = Topology.model_validate(topology)
    views = tuple(NodeView(node_rank=node.node_rank, name=node.name, state="ready") for node in seen.nodes)
    now = time.time()
    return Picture(
        taken_at=now,
        began_at=now - 60,
        phase="up",
        key=KEY,
        job=KEY,
        restart=0,
        purpose="run",
        head="node0000",
        nodes=views,
        topology=seen,
        tracks=noted["tracks"],
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default=SIZES, help=f"processes of the worlds (default: {SIZES})")
    parser.add_argument("--drivers", type=int, default=4, help="how many processes simulate the rest (default: 4)")
    parser.add_argument("--idle", type=float, default=10.0, metavar="S", help="how long nothing happens (default: 10)")
    parser.add_argument("--json", metavar="FILE", help="write every figure there")
    return parser.parse_args()


if __name__ == "__main__":
    main()
