"""The head tells people how the start of its cluster and its world goes on."""

import asyncio
from collections.abc import Collection
from contextlib import suppress

from eray._core.missing import name_missing
from eray._core.nodespec import NodeSpec
from eray._core.phase import STARTED
from eray._ray.bring_up import BringUp
from eray._ray.driver import HeadDriver
from eray._ray.nodes import Nodes
from eray._ray.notices import Told, is_heard, show_progress
from eray._ray.worlds import Worlds
from eray.errors import ErayError

TICK_S = 0.5
DOING = {"joined": "processes join", "running": "processes start JAX"}


class StartProgress:
    """Looks twice a second while something is awaited; who reads decides what is worth a line."""

    def __init__(
        self,
        spec: NodeSpec,
        worlds: Worlds,
        nodes: Nodes,
        bring_up: BringUp,
        driver: HeadDriver,
        connecting: Collection[int],
    ) -> None:
        """``connecting`` are the ranks of the nodes on which a process has called ``eray.connect()``, as they come."""
        self._spec, self._nodes, self._bring_up, self._worlds, self._driver = spec, nodes, bring_up, worlds, driver
        self._connecting = connecting

    async def follow(self) -> None:
        """Tell it, until cancelled."""
        while True:
            if is_heard():
                show_progress(await self._told())
            await asyncio.sleep(TICK_S)

    async def _told(self) -> Told | None:
        spec, roll, ready = self._spec, self._nodes.roll, self._bring_up.ready
        count = len(spec.nodes)
        if self._bring_up.all_were_ready or (spec.purpose == "tasks" and self._worlds.are_complete):
            return await self._world()
        if roll.missing:
            return "nodes report", count - len(roll.missing), count, roll.missing
        missing = tuple(name for rank, name in enumerate(spec.nodes) if rank not in ready)
        return "nodes start Ray", count - len(missing), count, missing

    async def _world(self) -> Told | None:
        """Return how far the world is that the supervisors start; processes that come by themselves tell it."""
        own = self._spec.world
        if own is None or not self._connecting or self._worlds.phase_of(own.name) in STARTED:
            return None  # a plain program never calls eray.connect()
        with suppress(ErayError):
            answer = await self._driver.watch(0)  # another version than any: it answers at once
            for world in answer["worlds"]:
                if world["name"] == own.name and world["phase"] not in STARTED:
                    count, missing = world["process_count"], world["missing_count"]
                    who = (name_missing(world["missing"], missing),) if missing else ()
                    return DOING.get(world["awaited"], "processes start"), count - missing, count, who
        return None
