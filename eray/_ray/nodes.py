"""The head's lines to the other nodes: who has reported, and what is said to them."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Container, Coroutine
from typing import Any

from eray._core.naming import LOOPBACK
from eray._core.nodespec import LOOK, NodeSpec
from eray._core.rollcall import NodeReport, RollCall
from eray._io import beacon, clock
from eray._io.channel import Channel
from eray._ray.supervisor import Message, Supervisor
from eray.errors import BeaconError, ChannelClosed, ErayError, NodesMissingError

logger = logging.getLogger(__name__)

Task = Coroutine[Any, Any, None]


class Nodes:
    """The nodes of a cluster as its head sees them. Rank 0 is the head itself, reached by a call."""

    def __init__(
        self,
        spec: NodeSpec,
        supervisor: Supervisor,
        *,
        reported: Callable[[NodeReport], None],
        said: Callable[[int, Message], None],
        lost: Callable[[int, str, str], None],
        spawn: Callable[[Task], None],
        show: Callable[[Channel], Awaitable[None]],
    ) -> None:
        self._show = show
        self._spec, self._supervisor = spec, supervisor
        self._reported, self._said, self._lost, self._spawn = reported, said, lost, spawn
        self._channels: dict[int, Channel] = {}
        self.roll = RollCall(spec.nodes)

    @property
    def connected(self) -> set[int]:
        """The ranks of the nodes that can be spoken to, the head's included."""
        return {0, *self._channels}

    async def listen(self) -> beacon.BeaconServer | None:
        """Open the beacon for the other nodes, and for those who look.

        Raises:
            BeaconError: no port is free for the other nodes; where there are none, None is returned.
        """
        spec = self._spec
        # On every address: the others dial what the head's name is to them, whatever ERAY_INTERFACE is for Ray.
        host = "" if spec.job is not None else LOOPBACK
        try:
            return await beacon.listen(host, spec.ports, spec.credentials, handler=self._serve)
        except BeaconError as exc:
            if len(spec.nodes) > 1:
                raise
            logger.warning("`eray status` will not see this cluster: %s", exc)
            return None

    def register(self, report: NodeReport) -> None:
        """Take a node's report."""
        self.roll = self.roll.register(report, clock.monotonic())
        self._reported(report)

    def send(self, rank: int, message: Message) -> None:
        """Say something to one node; one that is lost is noticed where it is read."""
        if rank == 0:
            self._supervisor.handle(message)
        elif (channel := self._channels.get(rank)) is not None:
            self._spawn(channel.send(message))

    def broadcast(self, message: Message) -> None:
        """Say something to all nodes."""
        for rank in sorted(self.connected):
            self.send(rank, message)

    def drop(self, rank: int) -> None:
        """Hang up on a node; that it is lost is noticed where it is read."""
        if (channel := self._channels.get(rank)) is not None:
            self._spawn(channel.close())

    def overdue(self, ready: Container[int]) -> NodesMissingError | None:
        """Return the error that names the nodes that did not report, or else those whose Ray is not ready."""
        missing = self.roll.missing or tuple(n for rank, n in enumerate(self._spec.nodes) if rank not in ready)
        if not missing:
            return None
        doing = "report to the head" if self.roll.missing else "bring Ray up"
        return NodesMissingError(", ".join(missing[:20]), len(self._spec.nodes), self._spec.cluster_timeout_s, doing)

    async def await_gone(self, timeout_s: float) -> None:
        """Wait until all other nodes have hung up, ``timeout_s`` at most."""
        deadline = clock.monotonic() + timeout_s
        while self._channels and clock.monotonic() < deadline:
            await asyncio.sleep(0.02)

    async def _serve(self, channel: Channel) -> None:
        first = await channel.receive()
        if first.get("type") == LOOK:
            await self._show(channel)
            return
        if first.get("type") == "error":  # it cannot take part
            self._said(self._spec.nodes.index(first["node"]), first)
            return
        try:
            report = NodeReport.from_dict(first)
        except ErayError as exc:
            self._spawn(_raised(exc))  # another eray: its words end the cluster
            return
        rank = report.node_rank
        if (known := self._channels.get(rank)) is not None:
            if not self.roll.has(report):
                self.register(report)  # the roll-call names the two that claim one place
                return
            await known.close()  # it gave that one up, and comes again
            while rank in self._channels:
                await asyncio.sleep(0)
        channel.notice_silence(self._spec.node_timeout_s)
        self._channels[rank] = channel
        self.register(report)
        reason = "the head closed it"
        try:
            while True:
                self._said(rank, await channel.receive())
        except ChannelClosed as exc:
            reason = exc.reason
        finally:
            del self._channels[rank]
            self.roll = self.roll.lost(rank, clock.monotonic())
            self._lost(rank, report.name, reason)


async def _raised(error: ErayError) -> None:
    raise error
