"""A driver with many simulated processes: each joins as ``CoordinatorClient.join`` does, or meets at a bare barrier.

``rendezvous.py`` starts it: ``crowd.py ADDRESS``. One JSON command a line on stdin, one JSON result a line on stdout. A
simulated process is a coroutine that blocks in one call of the actor, and asks again when that ends without a place.
"""

import asyncio
import json
import os
import sys
import time
from collections.abc import Awaitable
from typing import Any

import ray

from eray._core.timing import LONG_POLL_S, poll_s
from eray._ray.client import FOLLOW_S

PER_NODE = 8


def request(world: str, index: int, count: int) -> dict[str, Any]:
    """Return what a process on a node with eight GPUs says of itself."""
    node, local_index = divmod(index, PER_NODE)
    return {
        "world": world,
        "generation": None,
        "process_index": index,
        "process_count": count,
        "join_id": f"{world}-{index}-0123456789abcdef",
        "facts": {
            "node": f"node{node:04}",
            "node_rank": node,
            "hostname": f"node{node:04}.cluster.site",
            "local_index": local_index,
            "local_count": min(PER_NODE, count - node * PER_NODE),
            "pid": 1000 + index,
            "visible": [str(token) for token in range(PER_NODE)],
            "uuids": None,
            "gpus_on_node": PER_NODE,
            "hardware_count": PER_NODE,
            "in_step": True,
            "assigned": None,
            "override": None,
            "expected_devices": None,
        },
    }


async def join(handle: Any, world: str, index: int, count: int) -> dict[str, Any]:
    """Return the place of one process, asked for again as the client does."""
    asked, started = request(world, index, count), time.monotonic()
    while True:
        answer: dict[str, Any] = await handle.join.remote(asked, poll_s(index, time.monotonic() - started))
        if answer.get("error") or answer["failure"]:
            raise SystemExit(f"{world}, process {index}: {answer}")
        if answer["done"]:
            return answer
        asked["generation"] = answer["generation"]


async def join_node(handle: Any, world: str, first: int, count: int) -> dict[str, Any]:
    """Return the place of a node's first process; all of the node are asked for by one call, as the head does it."""
    asked = [request(world, index, count) for index in range(first, min(first + PER_NODE, count))]
    while True:
        answer = await handle.together.remote("join", [[each] for each in asked], LONG_POLL_S)
        if answer.get("error"):
            raise SystemExit(f"{world}, process {first} and those beside it: {answer}")
        places = answer["answers"]
        if bad := [each for each in places if each.get("error") or each["failure"]]:
            raise SystemExit(f"{world}, process {first} and those beside it: {bad[0]}")
        if all(each["done"] for each in places):
            return dict(places[0])
        for each, place in zip(asked, places, strict=True):
            each["generation"] = place["generation"]


async def meet(handle: Any, world: str, index: int, count: int) -> dict[str, Any]:
    """Return when as many have come to the bare barrier."""
    answer: dict[str, Any] = await handle.arrive.remote(world, index, count)
    return answer


async def live(handle: Any, world: str, index: int, count: int) -> dict[str, Any]:
    """Join, run, and follow the world as a process without a supervisor does, until it has failed."""
    generation = (await join(handle, world, index, count))["generation"]
    await handle.report.remote(world, generation, index, "running")
    while True:
        answer: dict[str, Any] = await handle.follow.remote(world, generation, index, False, FOLLOW_S)
        if answer["failure"]:
            return answer


async def run(handle: Any, world: str, index: int, count: int) -> dict[str, Any]:
    """Join and run, as a process whose supervisor follows the world for it."""
    generation = (await join(handle, world, index, count))["generation"]
    answer: dict[str, Any] = await handle.report.remote(world, generation, index, "running")
    return answer


async def all_of(command: dict[str, Any]) -> dict[str, Any]:
    """Carry out one command: all simulated processes of this driver at once."""
    handle = ray.get_actor(command["actor"], namespace="eray")
    way = {"join": join, "join_node": join_node, "meet": meet, "live": live, "run": run}[command["way"]]
    step = PER_NODE if way is join_node else 1
    calls: list[Awaitable[dict[str, Any]]] = [
        way(handle, command["world"], index, command["count"])
        for index in range(command["first"], command["end"], step)
    ]
    started = time.time()
    answers = await asyncio.gather(*calls)
    ended = time.time()
    return {"started": started, "ended": ended, "answer_bytes": max(len(json.dumps(answer)) for answer in answers)}


def main() -> None:
    words = os.fdopen(os.dup(1), "w")  # Ray prints on stdout
    os.dup2(2, 1)
    ray.init(sys.argv[1], namespace="eray", log_to_driver=False, logging_level="error")
    print("{}", file=words, flush=True)
    for line in sys.stdin:
        print(json.dumps(asyncio.run(all_of(json.loads(line)))), file=words, flush=True)


if __name__ == "__main__":
    main()
