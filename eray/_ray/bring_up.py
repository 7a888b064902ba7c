"""From reported nodes to a cluster with a coordinator: what the head starts, in which order, and tells the nodes."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any

from eray._core.nodespec import NodeSpec
from eray._core.rollcall import NodeReport
from eray._core.tracks import Recorder
from eray._io import clock
from eray._io.log_lines import log_change
from eray._io.threads import in_daemon_thread
from eray._ray.driver import HeadDriver
from eray._ray.nodes import Nodes
from eray._ray.supervisor import Message

logger = logging.getLogger(__name__)

HOME_S = 3.0


class BringUp:
    """Starts Ray on each node as early as it can start.

    ``ready`` tells since when (monotonic) a node's processes may attach.
    """

    def __init__(
        self,
        spec: NodeSpec,
        driver: HeadDriver,
        nodes: Nodes,
        spans: Recorder,
        spawn: Callable[[Coroutine[Any, Any, None]], None],
        came: Callable[[int], None],
    ) -> None:
        self._spec, self._driver, self._nodes, self._spawn, self._came = spec, driver, nodes, spawn, came
        self._spans = spans
        self._gcs_address: str | None = None
        self._started: set[int] = set()
        self._up: dict[int, dict[str, Any]] = {}
        self.ready: dict[int, float] = {}
        self._told: set[int] = set()
        self.were_all_ready = asyncio.Event()
        self.has_coordinator = asyncio.Event()

    @property
    def all_were_ready(self) -> bool:
        """Whether every node has been ready, each at some time."""
        return self.were_all_ready.is_set()

    def start(self, report: NodeReport) -> None:
        """Start Ray on a node that has reported: the head's at once, the others' when GCS has its port."""
        rank = report.node_rank
        if rank in self._started:
            return
        if self._driver.shared is not None:
            self._started.add(rank)
            self._spawn(self._use_shared(rank, report.name))
        elif rank == 0 or self._gcs_address is not None:
            self._started.add(rank)
            self._nodes.send(rank, {"type": "start-ray", "gcs_address": self._gcs_address if rank else None})

    def start_again(self, rank: int) -> None:
        """Start the Ray of a node once more, beside the processes of the world's next generation there."""
        self.forget(rank)
        self._started.add(rank)
        self._nodes.send(rank, {"type": "restart-ray", "gcs_address": self._gcs_address})

    def forget(self, rank: int) -> None:
        """Forget a node whose supervisor is gone; a new one of it starts from the beginning."""
        self._started.discard(rank)
        self._told.discard(rank)
        self._up.pop(rank, None)
        self.ready.pop(rank, None)

    def gcs_is_up(self, address: str) -> None:
        """Take the address of GCS, and start the nodes that reported before it was there."""
        self._gcs_address = address
        for report in self._nodes.roll.reports:
            self.start(report)

    async def node_is_up(self, rank: int, node: dict[str, Any]) -> None:
        """Take a node whose raylet is registered; with the head's comes the coordinator."""
        self._up[rank] = node
        if rank == 0:
            assert self._gcs_address is not None
            with self._spans.during("coordinator"):
                await in_daemon_thread(self._driver.create, self._gcs_address, node)
            log_change(logger, "coordinator-up", node=self._spec.node)
            self.has_coordinator.set()
        if not self.has_coordinator.is_set():
            return
        for each in sorted(self._up.keys() - self.ready):
            self.ready[each] = clock.monotonic()
            await in_daemon_thread(self._driver.add_node, self._up[each])
            access = {"gcs_address": self._gcs_address, "dashboard": self._driver.dashboard}
            self._nodes.send(each, {"type": "ready", **access, "node": self._up[each]})
            self._told.add(each)
            log_change(logger, "node-ready", node=self._spec.nodes[each], node_rank=each)
            self._came(each)
        if len(self._told) == len(self._spec.nodes) and not self.all_were_ready:
            self.were_all_ready.set()
            await self._tell_people()

    async def tell_layout(self, served: Mapping[int, Message]) -> None:
        """Tell which task is on which node, as soon as that is known; for messages only."""
        await self.has_coordinator.wait()
        if self._spec.purpose == "tasks" and 0 in served:
            await in_daemon_thread(self._driver.declare_tasks, dict(served), self._spec.nodes)

    async def _use_shared(self, rank: int, name: str) -> None:
        """Let a node of a step use the job's own cluster, whose supervisor is there already."""
        node = await in_daemon_thread(self._driver.shared_node, name)
        self.ready[rank] = clock.monotonic()
        self._nodes.send(rank, {"type": "ready", **(self._driver.shared or {}), "node": node})
        self.has_coordinator.set()

    async def _tell_people(self) -> None:
        log_change(logger, "cluster-up", node_count=len(self._spec.nodes))
        with suppress(TimeoutError):  # a home that hangs holds nothing up
            async with asyncio.timeout(HOME_S):
                await in_daemon_thread(self._driver.publish, list(self._up.values()))
        if self._spec.purpose == "up":
            print(self._driver.exports(), flush=True)
