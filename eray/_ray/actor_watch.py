"""Notices the death of processes that are Ray actors, where neither a supervisor nor a launcher sees it.

An actor is asked for its pid by Ray itself, in a call that waits while the actor is busy: Ray fails it as soon as the
process is gone. One that answers is idle, and is asked again after a pause. The coordinator asks a few of them itself.
The others it leaves to a watcher on each one's node, an actor too, in one call for each that lasts until it is gone: a
thousand idle ones cost their nodes little, and the coordinator next to nothing (decision 0007).
"""

import asyncio
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import ray
import ray.exceptions
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from eray._core import events
from eray._core.world import JoinRequest, Member, WorldState
from eray._ray.asking import Call
from eray._ray.record import Record

PAUSE_S = 1.0
"""How long an idle actor is left alone."""
WATCHED_HERE = 8
"""How many actors the coordinator asks itself; the node of any other has a watcher, a worker process of 0.1 GiB."""
MAX_WATCHED = 1000
"""How many actors of one node its watcher asks at a time."""
LOOK_S = 4.0
"""How often it is looked whether a watched actor has left its world meanwhile."""
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
    what = (dict(request), actor, ray.get_runtime_context().get_node_id())
    if call is None:
        coordinator.watch_actor.remote(*what)
        return
    with suppress(ray.exceptions.RayError):
        call(coordinator, "watch_actor", what, TELL_S)


async def gone(actor: Any, pid: int) -> None:
    """Return when the actor is no longer the process with this pid."""
    while True:
        try:
            if await actor.__ray_call__.remote(_pid) != pid:
                return  # Ray has started the actor again
        except ray.exceptions.ActorUnavailableError:
            pass  # it restarts, or the network does
        except ray.exceptions.RayActorError:
            return
        await asyncio.sleep(PAUSE_S)


class NodeWatcher:
    """The actor that asks those of its node, until the coordinator ends it."""

    async def gone(self, actor: Any, pid: int) -> None:
        """Return when the actor is no longer the process with this pid."""
        await gone(actor, pid)


@dataclass
class _Asked:
    request: JoinRequest
    asking: asyncio.Future[None]
    until: float  # when it must be seated
    is_seated: bool = False


class ActorWatch:
    """Watches actors from the coordinator's event loop."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._asked: dict[str, _Asked] = {}
        self._looking: asyncio.Task[None] | None = None
        self._watchers: dict[str, Any] = {}  # by Ray's id of their node
        self._watched: dict[str, set[str]] = {}

    def watch(self, request: JoinRequest, actor: Any, node_id: str) -> None:
        """Watch the actor on this Ray node that joins by this request, until it has left its world.

        Of a launched world, whose generation is told beforehand, process 0 is enough: its launcher sees them all, and
        when that dies all its actors die with it.
        """
        if request.join_id in self._tasks:
            return
        if request.generation is not None and request.process_index != 0:
            return
        watcher = self._watcher(node_id, request.join_id) if len(self._tasks) >= WATCHED_HERE else None
        watch = self._watch if request.generation is None else self._watch_launcher
        task = asyncio.get_running_loop().create_task(watch(request, actor, watcher))
        self._tasks[request.join_id] = task
        task.add_done_callback(lambda _: self._forget(request.join_id, node_id))

    async def _watch(self, request: JoinRequest, actor: Any, watcher: Any | None) -> None:
        await self._over(request, actor, watcher)
        found = self._world_of(request)
        if found is not None:
            await self._tell(found, request.process_index, f"its actor's process (pid {request.facts.pid}) is gone")

    async def _watch_launcher(self, request: JoinRequest, actor: Any, watcher: Any | None) -> None:
        await self._over(request, actor, watcher)
        if self._world_of(request) is None:
            return
        await asyncio.sleep(LAUNCHER_S)
        found = self._world_of(request)
        if found is not None:
            for process_index in range(found.process_count):
                await self._tell(found, process_index, "its launcher is gone")

    async def _over(self, request: JoinRequest, actor: Any, watcher: Any | None) -> None:
        """Return when the process is gone, or has left its world."""
        asking = asyncio.ensure_future(_told_gone(actor, request.facts.pid, watcher))
        self._asked[request.join_id] = _Asked(request, asking, asyncio.get_running_loop().time() + JOIN_S)
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())
        await asyncio.wait({asking})
        del self._asked[request.join_id]
        if not asking.cancelled():
            asking.result()

    async def _look(self) -> None:
        """Stop asking of those who have left their world, or were not seated in time; end with the last one."""
        while self._asked:
            await asyncio.sleep(LOOK_S)
            now = asyncio.get_running_loop().time()
            for each in self._asked.values():
                member = self._member(each.request)
                each.is_seated = each.is_seated or member is not None
                if member.is_over if member is not None else (each.is_seated or now > each.until):
                    each.asking.cancel()

    def _watcher(self, node_id: str, join_id: str) -> Any:
        """Return the watcher of this node, a new one if it has none."""
        if node_id not in self._watchers:
            actor_class: Any = ray.remote(NodeWatcher).options(
                num_cpus=0,
                max_concurrency=MAX_WATCHED,
                scheduling_strategy=NodeAffinitySchedulingStrategy(node_id, soft=False),
            )
            self._watchers[node_id], self._watched[node_id] = actor_class.remote(), set()
        self._watched[node_id].add(join_id)
        return self._watchers[node_id]

    def _forget(self, join_id: str, node_id: str) -> None:
        """Take that nobody is watched by this; a watcher that has nobody left ends."""
        del self._tasks[join_id]
        if join_id in (watched := self._watched.get(node_id, set())):
            watched.remove(join_id)
            if not watched:
                ray.kill(self._watchers.pop(node_id))

    def _member(self, request: JoinRequest) -> Member | None:
        world, index = self._record.state.worlds.get(request.world), request.process_index
        member = None if world is None or index >= world.process_count else world.members[index]
        return member if member is not None and member.join_id == request.join_id else None

    def _world_of(self, request: JoinRequest) -> WorldState | None:
        """Return the world while this process is a member of it that has neither left nor is known to be gone."""
        member = self._member(request)
        return None if member is None or member.is_over else self._record.state.worlds[request.world]

    async def _tell(self, world: WorldState, process_index: int, cause: str) -> None:
        name, generation = world.name, world.generation
        await self._record.tell(lambda: events.ProcessDied(name, generation, process_index, cause))


async def _told_gone(actor: Any, pid: int, watcher: Any | None) -> None:
    """Return when the actor is no longer the process with this pid, by the watcher's word as long as there is one."""
    if watcher is not None:
        call = watcher.gone.remote(actor, pid)
        try:
            await call
            return
        except asyncio.CancelledError:
            ray.cancel(call, recursive=False)
            raise
        except ray.exceptions.RayError:
            pass  # the watcher is gone itself, with its node or alone
    await gone(actor, pid)


def _pid(actor: object) -> int:
    return os.getpid()
