"""The coordinator: an actor that holds a State, tells it the time, and decides nothing.

Its methods take and return JSON types, so that a driver needs no eray to ask. An ErayError comes back as data,
``{"error": {"type", "args"}}``; ``client`` makes an exception of it again. This module loads neither jax nor numpy:
the start of its worker is on the way of every start-up.
"""

import asyncio
import gc
import logging
import os
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError

from eray._core import answers, events, waiting
from eray._core.answers import Answer
from eray._core.rendezvous import State, apply, milestone
from eray._core.topology import API_VERSION, Node
from eray._core.world import JoinRequest, Stage
from eray._io import clock
from eray._ray.snapshot import Snapshot
from eray.errors import ErayError, UsageError, error_data

logger = logging.getLogger(__name__)

COLLECT_EVERY = 20_000
"""Python's collector runs after so many new objects, not 700: the state is large and has no cycles to be found."""

LONGEST_WAIT_S = 30.0
"""No call blocks longer: a waiter asks again, so that a lost one never waits for ever (FACTS R10)."""

JSON = Mapping[str, Any]


class Coordinator:
    """Serves the one picture of the cluster. All methods run on one event loop; none blocks it."""

    def __init__(self, snapshot_path: str | None = None, job: dict[str, Any] | None = None) -> None:
        gc.set_threshold(COLLECT_EVERY, 20, 20)
        self._snapshot = Snapshot(snapshot_path)
        self._state = self._snapshot.load() or State(job=job)
        self._snapshot.write(self._state)  # so that the next life knows of this one
        self._signals: dict[str | None, asyncio.Event] = {}

    async def ping(self) -> Answer:
        """Return that the coordinator lives, and which life it is."""
        return self._sealed({"pid": os.getpid(), "version": self._state.version, "job": self._state.job})

    async def topology(self) -> Answer:
        """Return the Topology."""
        return self._sealed(answers.picture(self._state).model_dump(mode="json"))

    async def add_node(self, node: JSON) -> Answer:
        """Take a node whose Ray is up."""
        return await self._tell(lambda: events.NodeAdded(Node.model_validate(node)))

    async def find_node(self, fields: JSON) -> Answer:
        """Return the node with this ``ray_node_id``; one of a Ray that eray did not start is taken in, with a rank."""
        ray_node_id = str(fields.get("ray_node_id"))
        return await self._tell(
            lambda: events.NodeFound(dict(fields)), lambda state: answers.node_answer(state, ray_node_id)
        )

    async def lose_node(self, node_rank: int, reason: str) -> Answer:
        """Take note that a node is gone."""
        return await self._tell(lambda: events.NodeLost(node_rank, reason))

    async def declare_world(self, world: JSON) -> Answer:
        """Open the world ``{"name", "process_count", "generation"|null, "layout"|null}`` and return its generation."""
        fields: dict[str, Any] = {key: world.get(key) for key in ("name", "process_count", "generation", "layout")}
        return await self._tell(
            lambda: events.WorldDeclared(**fields),
            lambda state: {"generation": state.worlds[str(world["name"])].generation},
        )

    async def join(self, request: JSON, wait_s: float = LONGEST_WAIT_S) -> Answer:
        """Seat a process and return its place when all have joined, or who is awaited after ``wait_s``."""
        asked: JoinRequest | None = None

        def event() -> events.Joined:
            nonlocal asked
            asked = asked or JoinRequest.model_validate(request)
            return events.Joined(asked)

        def answer(state: State) -> Answer:
            nonlocal asked
            assert asked is not None
            found = answers.join_answer(state, asked)
            if found["generation"] is not None:
                # From now on this caller is of that generation and must not slip into the next.
                asked = asked.model_copy(update={"generation": found["generation"]})
            return found

        def waits(state: State) -> bool:
            nonlocal asked
            assert asked is not None
            if not waiting.join_waits(state, asked):
                return False
            if asked.generation is None:
                asked = asked.model_copy(update={"generation": state.worlds[asked.world].generation})
            return True

        return await self._serve(event, answer, str(request.get("world")), wait_s, waits)

    async def publish(self, world: str, generation: int, process_index: int, address: str) -> Answer:
        """Take the address of JAX's coordination service from process 0."""
        return await self._tell(lambda: events.Published(world, generation, process_index, address))

    async def await_address(
        self, world: str, generation: int, process_index: int, wait_s: float = LONGEST_WAIT_S
    ) -> Answer:
        """Return the address of JAX's coordination service when process 0 has published it."""
        return await self._serve(
            None, lambda state: answers.address_answer(state, world, generation, process_index), world, wait_s
        )

    async def report(self, world: str, generation: int, process_index: int, stage: str, detail: str = "") -> Answer:
        """Take that a process is ``dialled``, ``initialised``, ``running``, ``left``, or ``failed`` for a cause."""

        def event() -> events.Event:
            if stage == "failed":
                return events.ProcessFailed(world, generation, process_index, detail)
            return events.Reported(world, generation, process_index, _stage(stage))

        return await self._tell(event)

    async def await_stage(
        self, world: str, generation: int, process_index: int, stage: str, wait_s: float = LONGEST_WAIT_S
    ) -> Answer:
        """Return when all processes have come as far as ``stage``."""
        return await self._serve(
            None,
            lambda state: answers.stage_answer(state, world, generation, process_index, _stage(stage)),
            world,
            wait_s,
            lambda state: waiting.stage_waits(state, world, generation, process_index, _stage(stage)),
        )

    async def barrier(
        self,
        world: str,
        generation: int,
        process_index: int,
        name: str,
        sequence: int,
        wait_s: float = LONGEST_WAIT_S,
    ) -> Answer:
        """Return when all processes have come to barrier ``name`` for the ``sequence``-th time (1, 2, …)."""
        return await self._serve(
            lambda: events.BarrierEntered(world, generation, process_index, name, sequence),
            lambda state: answers.barrier_answer(state, world, generation, process_index, name, sequence),
            world,
            wait_s,
            lambda state: waiting.barrier_waits(state, world, generation, process_index, name, sequence),
        )

    async def died(
        self, world: str, generation: int, process_index: int, cause: str, code: int | None = None
    ) -> Answer:
        """Take note that a process is gone."""
        return await self._tell(lambda: events.ProcessDied(world, generation, process_index, cause, code))

    async def watch(self, version: int, wait_s: float = LONGEST_WAIT_S) -> Answer:
        """Return a summary of all worlds when it is no longer the one of ``version``."""

        def answer(state: State) -> Answer:
            return answers.watch_answer(state, clock.unix()) | {"done": state.version != version}

        return await self._serve(None, answer, None, wait_s)

    async def _tell(
        self, event: Callable[[], events.Event], answer: Callable[[State], Answer] = lambda state: {}
    ) -> Answer:
        return await self._serve(event, lambda state: answer(state) | {"done": True}, None, 0.0)

    async def _serve(
        self,
        event: Callable[[], events.Event] | None,
        answer: Callable[[State], Answer],
        topic: str | None,
        wait_s: float,
        waits: Callable[[State], bool] = lambda state: False,
    ) -> Answer:
        """Accept the event, and answer when the answer is final, or ``wait_s`` is over; never before it is on disk."""
        loop = asyncio.get_running_loop()
        try:
            until = loop.time() + min(max(float(wait_s), 0.0), LONGEST_WAIT_S)
            while True:
                if event is not None:
                    self._accept(event())
                remaining_s = until - loop.time()
                if remaining_s <= 0 or not waits(self._state):
                    # No state is kept while this waits: each of 10,000 waiters would keep another one.
                    serial, found = self._state.serial, answer(self._state)
                    if found["done"] or found.get("failure") is not None or remaining_s <= 0:
                        await self._snapshot.written(serial)
                        return self._sealed(found)
                await self._change_of(topic, remaining_s)
        except ErayError as exc:
            return self._sealed({"error": error_data(exc)})
        except ValidationError as exc:
            return self._sealed({"error": error_data(UsageError(str(exc)))})

    def _accept(self, event: events.Event) -> None:
        before, now = self._state, clock.unix()
        after = apply(before, event, now)
        if after is before:
            return
        self._state = after
        self._snapshot.offer(after)
        for name, world in after.worlds.items():
            known = before.worlds.get(name)
            if known is world:
                continue
            if known is None or milestone(known) != milestone(world) or known.passes != world.passes:
                self._wake(name)
            if known is None or known.phase != world.phase or known.generation != world.generation:
                failure = "" if world.failure is None else f": {world.failure.cause}"
                logger.info("world %s generation %s is %s%s", name, world.generation, world.phase, failure)
        if after.version != before.version:
            self._wake(None)

    def _wake(self, topic: str | None) -> None:
        signal = self._signals.pop(topic, None)
        if signal is not None:
            signal.set()

    async def _change_of(self, topic: str | None, timeout_s: float) -> None:
        signal = self._signals.setdefault(topic, asyncio.Event())
        try:
            async with asyncio.timeout(timeout_s):
                await signal.wait()
        except TimeoutError:
            return

    def _sealed(self, answer: Answer) -> Answer:
        return answer | {"api_version": API_VERSION, "epoch": self._state.epoch}


def _stage(name: str) -> Stage:
    stages = {stage.name.lower(): stage for stage in Stage}
    if name not in stages:
        raise UsageError(f"stage {name!r} is none of {', '.join(stages)}")
    return stages[name]
