"""What the head's supervisor does beyond its own node: roll-call, coordinator, the end.

All events, this node's and the others', arrive in ``handle``.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from eray._core.nodespec import NodeSpec
from eray._core.rollcall import NodeReport
from eray._io.log_lines import log_change
from eray._io.threads import in_daemon_thread
from eray._ray.alarm import Alarm
from eray._ray.bring_up import BringUp
from eray._ray.driver import HeadDriver
from eray._ray.failures import Failures
from eray._ray.news import News
from eray._ray.nodes import Nodes
from eray._ray.notices import fault
from eray._ray.start_progress import StartProgress
from eray._ray.supervisor import Message, Supervisor
from eray._ray.together import ask_together
from eray._ray.view import View
from eray._ray.worlds import Worlds
from eray.errors import ChannelClosed, ErayError, error_of

logger = logging.getLogger(__name__)

LEAVE_S = 4.0
"""How long the other nodes may take to stop before the head goes without them."""
DETACH_S = 2.0


class Head:
    """Brings the cluster up, hears what its nodes say, and takes it down."""

    def __init__(self, spec: NodeSpec, supervisor: Supervisor, driver: HeadDriver) -> None:
        self._spec, self._supervisor, self._driver = spec, supervisor, driver
        self._nodes = Nodes(
            spec,
            supervisor,
            reported=self._node_reported,
            said=self.handle,
            lost=self._node_lost,
            spawn=self._spawn,
            show=lambda channel: self._view.serve(channel),
        )
        self._bring_up = BringUp(spec, driver, self._nodes, supervisor.spans, self._spawn, self._node_came)
        self._served: dict[int, Message] = {}
        told = (self._nodes, self._bring_up, driver, self._served)
        self._view = View(spec, supervisor.environ, supervisor.spans, *told)
        self._news = News(self._bring_up.has_coordinator)
        self._alarm = Alarm(self._nodes, driver, self._news)
        self._failures = Failures(
            spec,
            self._nodes,
            driver,
            self._news,
            can_hear=lambda: bool(self._served) or spec.world is None,
            outlives_nodes=lambda: spec.purpose == "up" and self._bring_up.all_were_ready,
            spawn=self._spawn,
        )
        self._generations = self._failures.generations
        self._complete = False
        self._idle: set[int] = set()
        self._worlds = Worlds(
            driver,
            self._alarm,
            self._failures,
            own=lambda: self._own_worlds,
            runs=lambda: self._spawn(self._view.look()),
        )
        self._progress = StartProgress(spec, self._worlds, *told)
        self._tasks: set[asyncio.Task[None]] = set()
        supervisor.emit = lambda message: self.handle(0, message)

    async def run(self, listening: Callable[[], None]) -> int:
        """Serve until the cluster's end and return the exit code that counts.

        ``listening`` is called when the other nodes, and this one's processes, may come.
        """
        server = await self._nodes.listen()
        listening()
        try:
            self._nodes.register(self._supervisor.report())
            self._spawn(self._watch_roll_call())
            self._spawn(self._worlds.follow(self._bring_up.has_coordinator))
            self._spawn(self._news.post())
            self._spawn(self._progress.follow())
            code = await self._failures.result
            log_change(logger, "cluster-ended", node=self._spec.node, code=code, cause=self._failures.outcome.cause)
            if server is not None:
                server.refuse()
            await self._view.close(code, self._failures.outcome.cause, self._news)
            await self._take_down()
            await self._view.kept()
        finally:
            await self._cancel_tasks()
            if server is not None:
                await server.close()
        return code

    def finish(self, code: int) -> bool:
        """End the cluster; the first call decides the code. Return whether this was it."""
        return self._failures.finish(code)

    def handle(self, rank: int, message: Message) -> None:
        """Take what a node says."""
        kind = message["type"]
        logger.debug("node %s says %s", self._spec.nodes[rank], kind)
        if kind == "gcs":
            self._bring_up.gcs_is_up(message["gcs_address"])
        elif kind == "ray-ready":
            self._nodes.send(rank, self._view.noted.question())
            self._spawn(self._bring_up.node_is_up(rank, message["node"]))
        elif kind == "ray-lost":
            if self._failures.ray_lost(rank, message["reason"]):
                self._bring_up.start_again(rank)
        elif kind == "error":
            self._failures.node_failed(rank, error_of(message["error"]))
        elif kind == "child-ended":
            self._failures.child_ended(message)
        elif kind == "processes-stopped" and self._generations is not None:
            self._generations.stopped(rank, message["generation"])
        elif kind == "process-failed":
            about = (message["generation"], message["cause"], message["code"], message["process_index"])
            self._failures.world_failed(*about)
        elif kind == "died":
            self._failures.process_died(message)
        elif kind == "busy":
            self._served[rank] = message
            self._idle.discard(rank)
            self._spawn(self._bring_up.tell_layout(self._served))
        elif kind == "idle":
            self._idle.add(rank)
            self._end_when_idle()
        elif kind in ("spans", "clock"):
            self._view.noted.take(rank, message)
        elif kind == "ask":
            self._spawn(self._ask_for(rank, message))
        elif kind == "warned":
            self._alarm.raise_for(message["reason"])
        elif kind == "signal":
            self.finish(128 + message["number"])

    async def _ask_for(self, rank: int, message: Message) -> None:
        self._nodes.send(rank, await ask_together(self._driver.handle, message))

    def _node_reported(self, report: NodeReport) -> None:
        roll = self._nodes.roll
        if roll.problem is not None:
            self._failures.fail_with(roll.problem)
            return
        log_change(logger, "node-reported", node=report.name, node_rank=report.node_rank)
        self._bring_up.start(report)
        self._alarm.repeat(report.node_rank)
        self._nodes.send(report.node_rank, self._view.noted.question())
        if roll.complete and not self._complete:
            self._complete = True
            self._supervisor.spans.end("roll-call")
            log_change(logger, "all-reported", node_count=len(self._spec.nodes))
            if self._generations is not None:
                self._generations.start()

    def _node_came(self, rank: int) -> None:
        self._view.came(rank)
        if self._generations is not None:
            self._generations.came(rank)

    def _node_lost(self, rank: int, name: str, reason: str) -> None:
        self._bring_up.forget(rank)
        self._view.lost(rank, reason)
        if rank in self._idle:  # a node whose processes have left goes before the others (FACTS S15)
            return
        log_change(logger, "node-lost", node=name, node_rank=rank, reason=reason)
        self._failures.node_lost(rank, name, reason, self._processes_on(rank))
        self._end_when_idle()

    def _processes_on(self, rank: int) -> list[int]:
        if self._generations is not None:
            world = self._generations.world
            return [index for index, row in enumerate(world.layout(self._spec.nodes)) if row[0] == rank]
        return list(self._served.get(rank, {}).get("indexes_on_node") or [])

    async def _watch_roll_call(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._spec.cluster_timeout_s):
                await self._bring_up.were_all_ready.wait()
                return  # a node that is lost later is no late one
        if self._spec.purpose == "tasks" and self._worlds.are_complete:
            return  # worlds of some of the step's tasks: they have all that they need
        if (overdue := self._nodes.overdue(self._bring_up.ready)) is not None:
            self._failures.fail_with(overdue)

    @property
    def _own_worlds(self) -> set[str]:
        """The worlds whose failure ends this cluster; `eray up` outlives those that run in it."""
        if self._spec.world is not None:
            return {self._spec.world.name}
        return {str(about["world"]) for about in self._served.values()} if self._spec.purpose == "tasks" else set()

    def _end_when_idle(self) -> None:
        if self._spec.purpose != "tasks" or not self._idle >= self._nodes.connected:
            return
        if self._failures.outcome.told or len(self._served) == len(self._spec.nodes):
            self.finish(self._failures.outcome.told or 0)

    async def _take_down(self) -> None:
        self._idle |= self._nodes.connected
        self._nodes.broadcast({"type": "stop"})
        await self._supervisor.stop_processes()
        await self._nodes.await_gone(LEAVE_S)
        await self._cancel_tasks()  # none may ask the coordinator any more: Ray would start a cluster for that
        with suppress(TimeoutError):  # where Ray is gone already, leaving it can take for ever
            async with asyncio.timeout(DETACH_S):
                await in_daemon_thread(self._driver.close)
        await self._supervisor.stop()

    async def _cancel_tasks(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _spawn(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(self._guarded(coroutine))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _guarded(self, coroutine: Coroutine[Any, Any, None]) -> None:
        try:
            await coroutine
        except ChannelClosed:
            pass  # its end is noticed where it is read
        except ErayError as exc:
            self._failures.fail_with(exc)
        except Exception as exc:  # else all would wait for their deadline
            self._failures.fail_with(fault(self._spec.node, exc))
