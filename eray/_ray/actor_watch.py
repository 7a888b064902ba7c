"""Notices the death of processes that are Ray actors, where neither a supervisor nor a launcher sees it.

The coordinator asks each actor for its pid by Ray itself, in a call that waits while the actor is busy: Ray fails it as
soon as the process is gone. One that answers is idle, and is asked again after a pause.
"""

import asyncio
import os
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from typing import Any

import ray
import ray.exceptions

from eray._core import events
from eray._core.world import JoinRequest, WorldState
from eray._ray.asking import Call
from eray._ray.record import Record

PAUSE_S, LONGEST_PAUSE_S, AT_EASE = 1.0, 4.0, 250
"""How long an idle actor is left alone: longer where more than ``AT_EASE`` are watched, so that they cost little."""
TELL_S = 10.0
JOIN_S = 600.0
"""How long one may take to be seated: the world's earlier life has to end first."""
LAUNCHER_S = 10.0
"""How long a launcher may take to tell of all its processes when the first of them is gone."""


def own_actor() -> Any | None:
    """Return the handle of the actor that this process is, None where it is none. It does not keep the actor alive."""
    context = ray.get_runtime_context()
    return None if context.get_actor_id() is None else context.current_actor


def watch_own_actor(coordinator: Any, request: Mapping[str, Any], call: Call | None = None) -> None:
    """Have the coordinator watch the actor that this process is, where it is one, as the one that joins by ``request``.

    With a ``call`` it is told again, by that: a coordinator that was restarted watches nobody.
    """
    actor = own_actor()
    if actor is None:
        return
    if call is None:
        coordinator.watch_actor.remote(dict(request), actor)
        return
    with suppress(ray.exceptions.RayError):
        call(coordinator, "watch_actor", (dict(request), actor), TELL_S)


class ActorWatch:
    """Watches actors from the coordinator's event loop."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def watch(self, request: JoinRequest, actor: Any) -> None:
        """Watch the actor that joins by this request, until it has left its world.

        Of a launched world, whose generation is told beforehand, process 0 is enough: its launcher sees them all, and
        when that dies all its actors die with it.
        """
        if request.join_id in self._tasks:
            return
        if request.generation is None:
            self._spawn(request.join_id, self._watch(request, actor))
        elif request.process_index == 0:
            self._spawn(request.join_id, self._watch_launcher(request, actor))

    async def _watch(self, request: JoinRequest, actor: Any) -> None:
        await self._gone(request, actor)
        found = self._world_of(request)
        if found is not None:
            await self._tell(found, request.process_index, f"its actor's process (pid {request.facts.pid}) is gone")

    async def _watch_launcher(self, request: JoinRequest, actor: Any) -> None:
        await self._gone(request, actor)
        if self._world_of(request) is None:
            return
        await asyncio.sleep(LAUNCHER_S)
        found = self._world_of(request)
        if found is not None:
            for process_index in range(found.process_count):
                await self._tell(found, process_index, "its launcher is gone")

    async def _gone(self, request: JoinRequest, actor: Any) -> None:
        """Return when the process is gone, or has left its world."""
        loop, joined = asyncio.get_running_loop(), False
        until = loop.time() + JOIN_S
        while not joined or self._world_of(request) is not None:
            try:
                if await actor.__ray_call__.remote(_pid) != request.facts.pid:
                    return  # Ray has started the actor again
            except ray.exceptions.ActorUnavailableError:
                pass  # it restarts, or the network does
            except ray.exceptions.RayActorError:
                return
            await asyncio.sleep(min(LONGEST_PAUSE_S, max(PAUSE_S, len(self._tasks) / AT_EASE)))
            joined = joined or self._world_of(request) is not None or loop.time() > until

    def _world_of(self, request: JoinRequest) -> WorldState | None:
        """Return the world while this process is a member of it that has neither left nor is known to be gone."""
        world, index = self._record.state.worlds.get(request.world), request.process_index
        member = None if world is None or index >= world.process_count else world.members[index]
        return world if member is not None and member.join_id == request.join_id and not member.is_over else None

    async def _tell(self, world: WorldState, process_index: int, cause: str) -> None:
        name, generation = world.name, world.generation
        await self._record.tell(lambda: events.ProcessDied(name, generation, process_index, cause))

    def _spawn(self, join_id: str, coroutine: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks[join_id] = task
        task.add_done_callback(lambda _: self._tasks.pop(join_id))


def _pid(actor: object) -> int:
    return os.getpid()
