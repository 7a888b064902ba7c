"""The coordinator's record: the State on disk and in memory, and those who wait for it to change."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from pydantic import ValidationError

from eray._core import events
from eray._core.answers import Answer
from eray._core.metrics import job_name
from eray._core.rendezvous import State, apply, milestone
from eray._core.state_changes import changes_by
from eray._core.topology import API_VERSION
from eray._io import clock
from eray._io.log_lines import log_change
from eray._ray.metrics import Metrics, ray_instruments
from eray._ray.snapshot import Snapshot
from eray.errors import ErayError, UsageError, error_data

logger = logging.getLogger(__name__)

LONGEST_WAIT_S = 30.0
"""No call blocks longer: a waiter asks again, so that a lost one never waits for ever (FACTS R10)."""


class Record:
    """Accepts events one after the other, and serves answers. All on one event loop, which nothing here blocks."""

    def __init__(self, snapshot_path: str | None, job: dict[str, Any] | None, *, measured: bool = False) -> None:
        """``measured`` says that somebody can see metrics; without it they cost nothing."""
        self._snapshot = Snapshot(snapshot_path)
        self.state = self._snapshot.load() or State(job=job)
        self._snapshot.write(self.state)  # so that the next life knows of this one
        self._signals: dict[str | None, asyncio.Event] = {}
        self._metrics = Metrics(job_name(self.state), ray_instruments()) if measured else None

    async def tell(
        self, event: Callable[[], events.Event] | None, answer: Callable[[State], Answer] = lambda state: {}
    ) -> Answer:
        """Accept the event, and answer at once."""
        return await self.serve(event, lambda state: answer(state) | {"done": True}, None, 0.0)

    async def serve(
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
                if self._metrics is not None:
                    self._metrics.offer(self.state)
                remaining_s = until - loop.time()
                if remaining_s <= 0 or not waits(self.state):
                    # No state is kept while this waits: each of 10,000 waiters would keep another one.
                    serial, found = self.state.serial, answer(self.state)
                    if found["done"] or found.get("failure") is not None or remaining_s <= 0:
                        await self._snapshot.written(serial)
                        return self.sealed(found)
                await self._change_of(topic, remaining_s)
        except ErayError as exc:
            return self.sealed({"error": error_data(exc)})
        except ValidationError as exc:
            return self.sealed({"error": error_data(UsageError(str(exc)))})

    def _accept(self, event: events.Event) -> None:
        before, now = self.state, clock.unix()
        after = apply(before, event, now)
        if after is before:
            return
        self.state = after
        self._snapshot.offer(after)
        for name, world in after.worlds.items():
            known = before.worlds.get(name)
            if known is world:
                continue
            if known is None or milestone(known) != milestone(world) or known.passes != world.passes:
                self._wake(name)
            is_new = known is None or known.phase != world.phase or known.generation != world.generation
            if is_new and self._metrics is not None:
                self._metrics.observe(known, world)
        if after.version != before.version:
            self._wake(None)
        if after.preemption is not None and after.preemption is not before.preemption:
            for name in after.worlds:
                self._wake(name)
        if logger.isEnabledFor(logging.INFO):
            for change, fields in changes_by(event, before, after):
                log_change(logger, change, **fields)

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

    def sealed(self, answer: Answer) -> Answer:
        """Return the answer with what every answer has."""
        return answer | {"api_version": API_VERSION, "epoch": self.state.epoch}
