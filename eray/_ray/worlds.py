"""The head follows the worlds of its cluster, as the coordinator tells of them."""

import asyncio
import logging
from collections.abc import Callable

from eray._core.phase import COMPLETE, Phase
from eray._io.log_lines import log_change
from eray._ray.alarm import Alarm
from eray._ray.driver import HeadDriver
from eray._ray.failures import Failures
from eray._ray.supervisor import Message
from eray.errors import JoinError

logger = logging.getLogger(__name__)


class Worlds:
    """What the coordinator last said of each world.

    ``own`` are those whose failure ends the cluster; ``runs`` is called when any has come to run.
    """

    def __init__(
        self,
        driver: HeadDriver,
        alarm: Alarm,
        failures: Failures,
        *,
        own: Callable[[], set[str]],
        runs: Callable[[], None],
    ) -> None:
        self._driver, self._alarm, self._failures, self._own, self._runs = driver, alarm, failures, own, runs
        self._phases: dict[str, str] = {}

    @property
    def are_complete(self) -> bool:
        """Tell whether there is any world, and every one has all that it needs."""
        return bool(self._phases) and set(self._phases.values()) <= COMPLETE

    def phase_of(self, name: str) -> str | None:
        """Return the phase of a world, None before the first word of it."""
        return self._phases.get(name)

    async def follow(self, has_coordinator: asyncio.Event) -> None:
        """Take what changes, until cancelled."""
        version = 0
        await has_coordinator.wait()
        while True:
            answer = await self._driver.watch(version)
            version = int(answer["version"])
            self._alarm.heard(answer.get("preemption"))
            for world in answer["worlds"]:
                self._take(world)

    def _take(self, world: Message) -> None:
        name, generation, phase = world["name"], world["generation"], world["phase"]
        if self._phases.get(name) != phase:
            self._phases[name] = phase
            cause = world["failure"]
            log_change(logger, "world-phase", world=name, generation=generation, phase=phase, cause=cause)
            if phase == Phase.RUNNING:
                self._runs()
        if name not in self._own():
            return
        if self._failures.generations is not None and phase == Phase.RUNNING:
            self._failures.generations.runs(generation)
        if world["failure"] is not None:
            words = f"world {name!r} (generation {generation}) failed: {world['failure']}"
            index = (world["failed"] or {}).get("process_index")
            self._failures.world_failed(generation, words, JoinError.exit_code, index)
