"""What the variables of a step say about one of its tasks."""

from collections.abc import Mapping
from dataclasses import dataclass

from eray._core.counted import counted
from eray._slurm import variables as v
from eray._slurm.counts import expand_counts
from eray._slurm.hostlist import expand_hostlist
from eray.errors import SlurmMissingError


@dataclass(frozen=True)
class Task:
    """What a step says about this process; ``nodes`` are the step's, in Slurm's order.

    ``indexes_on_node`` are the process indexes of all tasks on this node, None where Slurm does not say.
    """

    nodes: tuple[str, ...]
    tasks_per_node: tuple[int, ...]
    process_index: int
    process_count: int
    node_rank: int
    node: str
    local_index: int
    local_count: int
    indexes_on_node: tuple[int, ...] | None = None


def read_task(environ: Mapping[str, str]) -> Task:
    """Read the task's place in its step from the step's own variables.

    Raises:
        SlurmFormatError, SlurmMissingError, SlurmContradictionError: as in ``read_environment``.
    """
    missing = [name for name in (v.STEP_TASKS_PER_NODE, v.PROCID, v.NODEID, v.LOCALID) if not environ.get(name)]
    if missing:
        raise SlurmMissingError(
            missing, "every task of a step has them; did a container, sudo or `env -i` drop them on the way here?"
        )
    nodes = tuple(expand_hostlist(environ[v.STEP_NODELIST], v.STEP_NODELIST))
    counts = expand_counts(environ[v.STEP_TASKS_PER_NODE], v.STEP_TASKS_PER_NODE)
    if len(counts) != len(nodes):
        reason = f"the list has {counted(len(nodes), 'node')}, the counts are for {len(counts)}"
        raise v.contradiction(environ, (v.STEP_NODELIST, v.STEP_TASKS_PER_NODE), reason)
    if v.read_whole(environ, v.STEP_NUM_NODES) not in (None, len(nodes)):
        raise v.contradiction(
            environ, (v.STEP_NODELIST, v.STEP_NUM_NODES), f"the list has {counted(len(nodes), 'node')}"
        )
    count = sum(counts)
    if v.read_whole(environ, v.STEP_NUM_TASKS) not in (None, count):
        raise v.contradiction(environ, (v.STEP_TASKS_PER_NODE, v.STEP_NUM_TASKS), f"the counts add up to {count}")
    index, rank, local = (v.read_whole(environ, name) or 0 for name in (v.PROCID, v.NODEID, v.LOCALID))
    if rank >= len(nodes):
        raise v.contradiction(environ, (v.NODEID, v.STEP_NODELIST), f"the step has {counted(len(nodes), 'node')}")
    if index >= count:
        raise v.contradiction(environ, (v.PROCID, v.STEP_TASKS_PER_NODE), f"the step has {counted(count, 'task')}")
    if local >= counts[rank]:
        raise v.contradiction(
            environ,
            (v.LOCALID, v.NODEID, v.STEP_TASKS_PER_NODE),
            f"node {nodes[rank]} has {counted(counts[rank], 'task')}",
        )
    if (environ.get(v.NODENAME) or nodes[rank]) != nodes[rank]:
        raise v.contradiction(
            environ, (v.NODENAME, v.NODEID, v.STEP_NODELIST), f"node {rank} of the step is {nodes[rank]}"
        )
    here = _indexes_on_node(environ, counts[rank])
    return Task(nodes, counts, index, count, rank, nodes[rank], local, counts[rank], here)


def _indexes_on_node(environ: Mapping[str, str], count: int) -> tuple[int, ...] | None:
    parts = environ.get(v.GLOBAL_TASKS, "").split(",")
    if len(parts) != count or not all(part.isdigit() for part in parts):
        return None  # it only helps to say where a missing process would be
    return tuple(int(part) for part in parts)
