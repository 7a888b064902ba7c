"""The head's view of its cluster, drawn when somebody looks, and kept where the cluster ends."""

import asyncio
import platform
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any

from eray._core.nodespec import NodeSpec
from eray._core.sights import shown_variables, timeouts_of
from eray._core.tracks import Recorder
from eray._core.version import __version__
from eray._io import clock, software
from eray._io.channel import Channel
from eray._io.threads import in_daemon_thread
from eray._io.uptime import own_age_s
from eray._ray import job_home
from eray._ray.bring_up import BringUp
from eray._ray.driver import HeadDriver
from eray._ray.news import News
from eray._ray.nodes import Nodes
from eray._ray.noted import Noted
from eray._ray.notices import SAID
from eray._settings import Settings
from eray.errors import ErayError

ASK_S = 5.0
"""How long the coordinator may take to tell of the worlds; what it said last is shown then."""
LAST_S = 1.0
"""How long the end of the cluster waits for the coordinator to hear of it, and for the last look to be kept."""
LATER_S = 2.0
"""How long after a world is up its processes are looked at unasked: they have better things to do at first."""
FRESH_S = 0.3
"""How old the coordinator's answer may be: many may look."""


class View:
    """What ``_core/picture.py`` describes, as JSON types."""

    def __init__(
        self,
        spec: NodeSpec,
        environ: Mapping[str, str],
        spans: Recorder,
        nodes: Nodes,
        bring_up: BringUp,
        driver: HeadDriver,
        connecting: Collection[int],
    ) -> None:
        """``spans`` are the head's own, and ``connecting`` the ranks of nodes where one called ``eray.connect()``."""
        self._spans, self._connecting, self._timeouts = spans, connecting, timeouts_of(Settings.from_environ(environ))
        self._spec, self._environ, self._nodes, self._bring_up, self._driver = spec, environ, nodes, bring_up, driver
        self._began_at = clock.unix() - own_age_s()  # as its spans and its door tell it
        self.noted = Noted(spec.nodes)
        self._lost: dict[int, tuple[float, str]] = {}
        self._topology: Mapping[str, Any] | None = None
        self._tracks: Sequence[Mapping[str, Any]] = ()
        self._asked_at = 0.0
        self._asking = asyncio.Lock()
        self._keeping: asyncio.Task[None] | None = None

    def lost(self, rank: int, reason: str) -> None:
        """Take note that a node is gone."""
        self._lost[rank] = (clock.unix(), reason)

    def came(self, rank: int) -> None:
        """Take note that a node is there, or there again."""
        self._lost.pop(rank, None)

    async def serve(self, channel: Channel) -> None:
        """Show somebody the cluster each time they ask, until they hang up."""
        while True:
            await channel.send_large({"picture": await self.draw()})
            await channel.receive()

    async def look(self) -> None:
        """Have a look at a world that is up: the end may be too sudden for one, as where Slurm ends Ray first."""
        await asyncio.sleep(LATER_S)
        await self._ask()

    async def close(self, code: int, cause: str | None, news: News) -> None:
        """Take a last look, and begin to keep it: who comes later is shown that.

        After a failure it is taken when the coordinator has heard the news; one that does not answer any more is shown
        as it was last.
        """
        ending = {"at": clock.unix(), "code": code, "cause": cause}
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_S):
                if code:
                    await news.posted()
                    self._asked_at = 0.0
                await self._ask()
        picture = self._picture(ending)
        self._keeping = asyncio.create_task(in_daemon_thread(job_home.keep_picture, self._spec, picture))

    async def kept(self) -> None:
        """Wait until the last look is kept, a moment at most."""
        if self._keeping is not None:
            await asyncio.wait({self._keeping}, timeout=LAST_S)

    async def draw(self) -> dict[str, Any]:
        """Return the picture as it is now."""
        await self._ask()
        return self._picture(None)

    def _picture(self, ending: Mapping[str, Any] | None) -> dict[str, Any]:
        topology, spec = self._topology, self._spec
        running = topology is not None and any(world["phase"] != "forming" for world in topology["worlds"])
        if not self._bring_up.all_were_ready:  # later it tells by itself, as the others do
            self.noted.take(0, {"type": "spans", "spans": self._spans.rows()})
        phase = "up" if self._bring_up.all_were_ready or running else "starting"
        return {
            "taken_at": clock.unix(),
            "began_at": self._began_at,
            "phase": "ended" if ending is not None else phase,
            "key": spec.key,
            "job": spec.job,
            "restart": spec.restart,
            "cluster": spec.cluster,
            "purpose": spec.purpose,
            "head": spec.node,
            "nodes": [self._node(rank, name) for rank, name in enumerate(spec.nodes)],
            "topology": topology,
            "tracks": [*self.noted.to_json(), *self._tracks],
            "ending": ending,
            "connecting": sorted(self._connecting),
            "timeouts": self._timeouts,
            "versions": {
                "eray": __version__,
                **{name: software.installed(name) or "none" for name in ("ray", "jax")},
                "python": platform.python_version(),
            },
            "environment": shown_variables(self._environ),
            "remarks": list(SAID),
        }

    def _node(self, rank: int, name: str) -> dict[str, Any]:
        now, unix = clock.monotonic(), clock.unix()
        entry, ready = self._nodes.roll.entries.get(rank), self._bring_up.ready.get(rank)
        state, since, reason = "awaited", None, ""
        if rank in self._lost:
            state, (since, reason) = "lost", self._lost[rank]
        elif ready is not None:
            state, since = "ready", unix - (now - ready)
        elif entry is not None:
            state, since = "reported", unix - (now - entry.reported_at)
        return {"node_rank": rank, "name": name, "state": state, "since": since, "reason": reason}

    async def _ask(self) -> None:
        async with self._asking:
            if self._bring_up.has_coordinator.is_set() and clock.monotonic() - self._asked_at > FRESH_S:
                with suppress(ErayError, TimeoutError):
                    async with asyncio.timeout(ASK_S):
                        self._topology, self._tracks = await self._driver.topology()
                self._asked_at = clock.monotonic()
