"""What a monitoring system is told of a cluster: a table of metrics, and their values in a state.

Nothing here walks over processes. Ray puts ``ray_`` before each name. The job's tag is not called ``job``: Prometheus
gives that label to every target.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from eray._core.phase import Phase
from eray._core.rendezvous import State
from eray._core.world import Stage, WorldState

JOB = "eray_job"


@dataclass(frozen=True)
class Metric:
    """One metric. ``tags`` come beside the job's; ``buckets`` are the upper bounds of a histogram's, in its unit."""

    name: str
    kind: Literal["gauge", "histogram"]
    meaning: str
    tags: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()


@dataclass(frozen=True)
class Sample:
    """The value of a metric now, or one observation of a histogram."""

    name: str
    value: float
    tags: Mapping[str, str] = field(default_factory=dict)


METRICS = (
    Metric("eray_nodes", "gauge", "Nodes that are up."),
    Metric("eray_nodes_expected", "gauge", "Nodes that the job has; absent where that is not known."),
    Metric("eray_worlds", "gauge", "Worlds by phase, of those that the coordinator remembers.", ("phase",)),
    Metric("eray_processes_joined", "gauge", "Processes that have joined this generation of the world.", ("world",)),
    Metric("eray_processes_expected", "gauge", "Processes that this generation of the world has.", ("world",)),
    Metric("eray_world_generation", "gauge", "Generation of the world, from 1.", ("world",)),
    Metric("eray_restarts", "gauge", "How often worlds were started again since the cluster's start."),
    Metric("eray_preemption_notice", "gauge", "1 since the job is known to end soon, else 0."),
    Metric("eray_coordinator_epoch", "gauge", "Which life of the coordinator this is, from 1."),
    Metric(
        "eray_join_seconds",
        "histogram",
        "Seconds from a generation's first join until it was planned (all had joined), and until all ran.",
        ("until",),
        (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 600.0, 1800.0),
    ),
)


def job_name(state: State) -> str:
    """Return the value of the job's tag: Slurm's job id, the key of a cluster without a job, or nothing."""
    job = state.job or {}
    return str(job.get("id") or job.get("key") or "")


def gauges(state: State) -> Iterator[Sample]:
    """Yield the value of every gauge. A world that was forgotten has none any more."""
    yield Sample("eray_nodes", sum(node.alive for node in state.nodes.values()))
    if (expected := (state.job or {}).get("node_count")) is not None:
        yield Sample("eray_nodes_expected", int(expected))
    phases = Counter(world.phase for world in state.worlds.values())
    for phase in Phase:
        yield Sample("eray_worlds", phases[phase], {"phase": phase.value})
    for name, world in state.worlds.items():
        tags = {"world": name}
        yield Sample("eray_processes_joined", world.reached[Stage.JOINED], tags)
        yield Sample("eray_processes_expected", world.process_count, tags)
        yield Sample("eray_world_generation", world.generation, tags)
    yield Sample("eray_restarts", state.restart_count)
    yield Sample("eray_preemption_notice", int(state.preemption is not None))
    yield Sample("eray_coordinator_epoch", state.epoch)


def observations(before: WorldState | None, after: WorldState) -> Iterator[Sample]:
    """Yield what a world's change adds to the histograms: a generation counts once until planned, and until running."""
    seen = len(before.timeline) if before is not None and before.generation == after.generation else 0
    for phase, at in after.timeline[seen:]:
        if phase in (Phase.PLANNED, Phase.RUNNING) and after.first_joined_at is not None:
            yield Sample("eray_join_seconds", max(at - after.first_joined_at, 0.0), {"until": phase.value})
