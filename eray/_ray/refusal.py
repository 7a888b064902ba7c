"""Tell the other nodes why this one cannot take part, so that nobody waits for it until a deadline."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress

from eray._core.nodespec import NodeSpec
from eray._io import beacon
from eray._io.channel import Channel
from eray.errors import ClusterError, ErayError, error_data

TELL_S = 10.0
"""How long the others may take to come, or the head to be there."""


def tell_others(spec: NodeSpec, error: ErayError) -> None:
    """Tell the head of this node's error, or of the head's own all nodes, who then fail with it too."""
    if len(spec.nodes) == 1:
        return
    telling = _tell_nodes(spec, error) if spec.node_rank == 0 else _tell_head(spec, error)
    # In a thread: a notebook has a loop in this one.
    thread = threading.Thread(target=asyncio.run, args=(telling,), name="eray-refusal", daemon=True)
    thread.start()
    thread.join(TELL_S + 2.0)


async def dial(spec: NodeSpec, deadline_s: float, progress: Callable[[str], None]) -> Channel:
    """Return a channel to the head.

    Raises:
        BeaconError: it does not answer in time, or is not ours.
    """
    channel = await beacon.dial(
        spec.head_hosts,
        spec.ports,
        spec.credentials,
        node=spec.node,
        deadline_s=deadline_s,
        progress=progress,
    )
    channel.notice_silence(spec.node_timeout_s)
    return channel


async def _tell_head(spec: NodeSpec, error: ErayError) -> None:
    with suppress(ClusterError):
        channel = await dial(spec, TELL_S, lambda text: None)
        await channel.send({"type": "error", "node": spec.node, "error": error_data(error)})
        await channel.close()


async def _tell_nodes(spec: NodeSpec, error: ErayError) -> None:
    waiting, all_told = {*spec.nodes[1:]}, asyncio.Event()
    failed = {"type": "failed", "cause": str(error), "code": error.exit_code, "error": error_data(error)}

    async def tell(channel: Channel) -> None:
        await channel.receive()  # its report, or that it cannot take part either
        await channel.send(failed)
        await channel.send({"type": "stop"})
        waiting.discard(channel.peer)
        if not waiting:
            all_told.set()

    with suppress(ClusterError, TimeoutError):
        server = await beacon.listen("", spec.ports, spec.credentials, handler=tell)
        try:
            await asyncio.wait_for(all_told.wait(), TELL_S)
        finally:
            await server.close()
