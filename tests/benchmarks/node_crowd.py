"""Many simulated nodes of eight processes, each with the real line to the head and the real relay.

``scale.py`` starts it: ``node_crowd.py PORT TOKEN FIRST END``, the nodes from FIRST to before END. They dial first;
then one JSON command a line on stdin, one JSON result a line on stdout.
"""

import asyncio
import itertools
import json
import os
import resource
import sys
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any

from crowd import PER_NODE, request

from eray._core.handshake import Credentials
from eray._core.naming import LOOPBACK
from eray._core.timing import LONG_POLL_S
from eray._io import beacon
from eray._io.channel import Channel
from eray._ray.relay import NodeRelay

KEY, FINGERPRINT, DIAL_S = "scale", "0123456789abcdef", 120.0


def credentials(token: str) -> Credentials:
    """Return what the simulated nodes and their head know of their cluster."""
    return Credentials(token, FINGERPRINT, KEY)


class SimulatedNode:
    """One node: its line to the head, and what its processes ask over it."""

    def __init__(self, rank: int, channel: Channel) -> None:
        self.rank, self._channel = rank, channel
        self._relay = NodeRelay(self._send, lambda: PER_NODE)
        self._numbers = itertools.count()
        self._waiting: dict[int, asyncio.Future[Mapping[str, Any]]] = {}
        self._tasks = {asyncio.ensure_future(self._listen())}

    async def join(self, world: str, count: int, generation: int) -> int:
        """Let all processes of the node join; return the longest answer's length as JSON."""
        return max(await asyncio.gather(*(self._join(world, i, count, generation) for i in self.indexes(count))))

    async def run(self, world: str, count: int, generation: int) -> int:
        """Let all of them report that they run."""
        calls = (self._ask("report", [world, generation, index, "running", ""]) for index in self.indexes(count))
        for answer in await asyncio.gather(*calls):
            if answer.get("error"):
                raise SystemExit(f"node {self.rank}: {answer}")
        return 0

    def indexes(self, count: int) -> range:
        """Return the processes of this node."""
        return range(self.rank * PER_NODE, min((self.rank + 1) * PER_NODE, count))

    async def _join(self, world: str, index: int, count: int, generation: int) -> int:
        asked = request(world, index, count) | {"generation": generation}
        asked["join_id"] += f"-{generation}"
        while True:
            answer = await self._ask("join", [asked, LONG_POLL_S])
            if answer.get("error") or answer.get("unreachable") or answer.get("failure"):
                raise SystemExit(f"{world}, process {index}: {answer}")
            if answer.get("done"):
                return len(json.dumps(answer))

    async def _ask(self, method: str, args: list[Any]) -> Mapping[str, Any]:
        number, answer = next(self._numbers), asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        self._relay.take(self._hand, {"number": number, "method": method, "args": args})
        return await answer

    def _hand(self, message: Mapping[str, Any]) -> None:
        self._waiting.pop(message["number"]).set_result(message["answer"])

    def _send(self, message: Mapping[str, Any]) -> None:
        task = asyncio.ensure_future(self._channel.send(message))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _listen(self) -> None:
        while True:
            self._relay.answered(await self._channel.receive())


async def dial(rank: int, port: int, token: str) -> SimulatedNode:
    """Return a node that has proved itself to the head and told it who it is."""
    channel = await beacon.dial(
        LOOPBACK, [port], credentials(token), node=f"node{rank:05}", deadline_s=DIAL_S, progress=lambda text: None
    )
    channel.notice_silence(DIAL_S)
    await channel.send({"type": "report", "node_rank": rank})
    return SimulatedNode(rank, channel)


async def serve(port: int, token: str, ranks: range, words: Any) -> None:
    """Dial for all nodes, then carry out the commands."""
    began = time.time()
    nodes = await asyncio.gather(*(dial(rank, port, token) for rank in ranks))
    tell(words, began, 0)
    async for about in commands():
        began = time.time()
        args = about["world"], about["count"], about["generation"]
        lengths = await asyncio.gather(*(getattr(node, about["way"])(*args) for node in nodes))
        tell(words, began, max(lengths))


async def commands() -> AsyncIterator[dict[str, Any]]:
    """Yield the commands on standard input, while the nodes' lines are served."""
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    async for line in reader:
        yield json.loads(line)


def tell(words: Any, began: float, answer_bytes: int) -> None:
    """Say how long it took."""
    print(json.dumps({"started": began, "ended": time.time(), "answer_bytes": answer_bytes}), file=words, flush=True)


def main() -> None:
    port, token, first, end = sys.argv[1:]
    words = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    asyncio.run(serve(int(port), token, range(int(first), int(end)), words))


if __name__ == "__main__":
    main()
