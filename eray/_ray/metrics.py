"""Shows the coordinator's state to Prometheus, by way of Ray's metrics (docs/decisions/0010-metrics.md).

Ray sends a process's metrics to its node's agent every 10 s and forgets its gauges with that, so they are set again
and again: at most once a second while the state changes, and every few seconds while it does not.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from eray._core import metrics
from eray._core.rendezvous import State
from eray._core.world import WorldState

LEAST_S = 1.0
"""How long after the gauges were set they may be set to a newer state."""
REFRESH_S = 4.0
"""How soon they are set again at the latest: twice in Ray's interval of 10 s, so that none of its reports lacks one."""

Instrument = Callable[[float, dict[str, str]], None]
"""Sets a gauge, or adds an observation to a histogram: takes value and tags."""


class Metrics:
    """The metrics of one coordinator, on its event loop. ``instruments`` stand by the metrics' names."""

    def __init__(
        self,
        job: str,
        instruments: Mapping[str, Instrument],
        loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.get_running_loop,
    ) -> None:
        self._job, self._instruments, self._loop = {metrics.JOB: job}, instruments, loop
        self._newest: State | None = None
        self._shown = -1
        self._values: list[tuple[Instrument, float, dict[str, str]]] = []
        self._not_before = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._is_due = False

    def offer(self, state: State) -> None:
        """Take the newest state, to be shown soon."""
        if state is self._newest:
            return
        self._newest = state
        if not self._is_due:
            self._is_due = True
            self._set_at(self._not_before)

    def observe(self, before: WorldState | None, after: WorldState) -> None:
        """Take that a world has come to another phase or generation."""
        for sample in metrics.observations(before, after):
            self._instruments[sample.name](sample.value, {**self._job, **sample.tags})

    def _set(self) -> None:
        assert self._newest is not None
        if self._newest.serial != self._shown:
            self._shown = self._newest.serial
            self._values = [
                (self._instruments[sample.name], sample.value, {**self._job, **sample.tags})
                for sample in metrics.gauges(self._newest)
            ]
        for instrument, value, tags in self._values:
            instrument(value, tags)
        now = self._loop().time()
        self._is_due, self._not_before = False, now + LEAST_S
        self._set_at(now + REFRESH_S)

    def _set_at(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop().call_at(when, self._set)


def ray_instruments() -> dict[str, Instrument]:
    """Return Ray's metrics of this process by their names; to be made once a process."""
    from ray.util.metrics import Gauge, Histogram

    found: dict[str, Instrument] = {}
    for metric in metrics.METRICS:
        keys = (metrics.JOB, *metric.tags)
        if metric.kind == "gauge":
            found[metric.name] = Gauge(metric.name, metric.meaning, keys).set
        else:
            found[metric.name] = Histogram(metric.name, metric.meaning, list(metric.buckets), keys).observe
    return found


def has_agent() -> bool:
    """Tell whether a node of the Ray to which this process is attached shows metrics to anyone."""
    import ray

    nodes: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
    return any(node["Alive"] and node.get("MetricsExportPort", 0) > 0 for node in nodes)
