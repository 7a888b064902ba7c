"""The coordinator: an actor that asks its record (``record``) and decides nothing.

Its methods take and return JSON types, so that a driver needs no eray to ask. An ErayError comes back as data,
``{"error": {"type", "args"}}``; ``client`` makes an exception of it again. This module loads neither jax nor numpy:
the start of its worker is on the way of every start-up.
"""

import asyncio
import gc
import os
from collections.abc import Mapping, Sequence
from typing import Any

from eray._core import answers, events, waiting
from eray._core.answers import Answer
from eray._core.rendezvous import State
from eray._core.topology import Node
from eray._core.world import JoinRequest, Stage
from eray._io import clock
from eray._io.log_lines import log_package
from eray._ray import relay
from eray._ray.actor_watch import ActorWatch
from eray._ray.noted import Notes
from eray._ray.record import LONGEST_WAIT_S, Record
from eray._settings import Settings
from eray.errors import UsageError, error_data

JSON = Mapping[str, Any]

COLLECT_EVERY = 20_000
"""Python's collector runs after so many new objects, not 700: the state is large and has no cycles to be found."""


class Coordinator:
    """Serves the one picture of the cluster. All methods run on one event loop; none blocks it."""

    def __init__(
        self,
        snapshot_path: str | None = None,
        job: dict[str, Any] | None = None,
        log: tuple[Settings, str] | None = None,
        measured: bool = False,
    ) -> None:
        if log is not None:
            log_package(*log)
        gc.set_threshold(COLLECT_EVERY, 20, 20)
        self._record = Record(snapshot_path, job, measured=measured)
        self._actors, self._notes = ActorWatch(self._record), Notes()

    async def ping(self) -> Answer:
        """Return that the coordinator lives, and which life it is."""
        return self._record.sealed(
            {"pid": os.getpid(), "version": self._record.state.version, "job": self._record.state.job}
        )

    async def topology(self) -> Answer:
        """Return the Topology."""
        return self._record.sealed(answers.picture(self._record.state).model_dump(mode="json"))

    async def note(self, track: JSON, now: float) -> Answer:
        """Keep what a process spent its start on, one that no supervisor serves; it dies with this actor."""
        return await self._record.tell(None, lambda state: self._notes.take(track, now))

    async def notes(self) -> Answer:
        """Return what processes noted, as the tracks of a picture."""
        return self._record.sealed({"tracks": self._notes.to_json()})

    async def add_node(self, node: JSON) -> Answer:
        """Take a node whose Ray is up."""
        return await self._record.tell(lambda: events.NodeAdded(Node.model_validate(node)))

    async def find_node(self, fields: JSON) -> Answer:
        """Return the node with this ``ray_node_id``; one of a Ray that eray did not start is taken in, with a rank."""
        ray_node_id = str(fields.get("ray_node_id"))
        return await self._record.tell(
            lambda: events.NodeFound(dict(fields)), lambda state: answers.node_answer(state, ray_node_id)
        )

    async def lose_node(self, node_rank: int, reason: str) -> Answer:
        """Take note that a node is gone."""
        return await self._record.tell(lambda: events.NodeLost(node_rank, reason))

    async def declare_world(self, world: JSON) -> Answer:
        """Open the world ``{"name", "process_count", "generation"|null, "layout"|null}`` and return its generation."""
        fields: dict[str, Any] = {key: world.get(key) for key in ("name", "process_count", "generation", "layout")}
        return await self._record.tell(
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

        return await self._record.serve(event, answer, str(request.get("world")), wait_s, waits)

    async def watch_actor(self, request: JSON, actor: Any, node_id: str) -> Answer:
        """Watch the ``actor`` on Ray's node ``node_id`` that joins by this request: its death is told to the world.

        ``actor`` is Ray's handle, the one thing here that is no JSON.
        """
        asked = JoinRequest.model_validate(request)
        self._actors.watch(asked, actor, node_id)
        return self._record.sealed({})

    async def publish(self, world: str, generation: int, process_index: int, address: str) -> Answer:
        """Take the address of JAX's coordination service from process 0."""
        return await self._record.tell(lambda: events.Published(world, generation, process_index, address))

    async def await_address(
        self, world: str, generation: int, process_index: int, wait_s: float = LONGEST_WAIT_S
    ) -> Answer:
        """Return the address of JAX's coordination service when process 0 has published it."""
        return await self._record.serve(
            None, lambda state: answers.address_answer(state, world, generation, process_index), world, wait_s
        )

    async def report(self, world: str, generation: int, process_index: int, stage: str, detail: str = "") -> Answer:
        """Take that a process is ``dialled``, ``initialised``, ``running``, ``left``, or ``failed`` for a cause."""

        def event() -> events.Event:
            if stage == "failed":
                return events.ProcessFailed(world, generation, process_index, detail)
            return events.Reported(world, generation, process_index, _stage(stage))

        return await self._record.tell(event)

    async def await_stage(
        self, world: str, generation: int, process_index: int, stage: str, wait_s: float = LONGEST_WAIT_S
    ) -> Answer:
        """Return when all processes have come as far as ``stage``."""
        return await self._record.serve(
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
        return await self._record.serve(
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
        return await self._record.tell(lambda: events.ProcessDied(world, generation, process_index, cause, code))

    async def warn(self, reason: str) -> Answer:
        """Take note that the job is about to end; the first reason is kept."""
        return await self._record.tell(lambda: events.Warned(reason))

    async def tell_step(
        self, world: str, generation: int, process_index: int, step: int | None, wait_s: float = LONGEST_WAIT_S
    ) -> Answer:
        """Take the last step of a process, and return after which one all save when all have told theirs."""
        return await self._record.serve(
            lambda: events.StepTold(world, generation, process_index, step),
            lambda state: answers.saving_answer(state, world, generation, process_index),
            world,
            wait_s,
            lambda state: waiting.saving_waits(state, world, generation, process_index),
        )

    async def give_up_saving(self, world: str, generation: int, process_index: int) -> Answer:
        """Let no process save, for one that waited in vain; return what was agreed upon where all told meanwhile."""
        return await self._record.tell(
            lambda: events.SavingGivenUp(world, generation, process_index),
            lambda state: answers.saving_answer(state, world, generation, process_index),
        )

    async def follow(
        self, world: str, generation: int, process_index: int, warned: bool, wait_s: float = LONGEST_WAIT_S
    ) -> Answer:
        """Return when the world has failed, or of a preemption when the process was not ``warned`` of it yet."""
        return await self._record.serve(
            None,
            lambda state: answers.follow_answer(state, world, generation, process_index, warned),
            world,
            wait_s,
        )

    async def together(self, method: str, calls: Sequence[Sequence[Any]], wait_s: float | None = None) -> Answer:
        """Return the ``answers`` to one question of several processes, as each would get it by a call of its own."""
        if method not in relay.WAITING | relay.AT_ONCE:
            return self._record.sealed({"error": error_data(UsageError(f"{method!r} cannot be asked together"))})
        kept = () if wait_s is None else (wait_s,)
        asked = (getattr(self, method)(*args, *kept) for args in calls)
        return self._record.sealed({"answers": await asyncio.gather(*asked)})

    async def watch(self, version: int, wait_s: float = LONGEST_WAIT_S) -> Answer:
        """Return a summary of all worlds when it is no longer the one of ``version``."""

        def answer(state: State) -> Answer:
            return answers.watch_answer(state, clock.unix()) | {"done": state.version != version}

        return await self._record.serve(None, answer, None, wait_s)


def _stage(name: str) -> Stage:
    stages = {stage.name.lower(): stage for stage in Stage}
    if name not in stages:
        raise UsageError(f"stage {name!r} is none of {', '.join(stages)}")
    return stages[name]
