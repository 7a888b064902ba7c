"""The allocation around a shell or batch script: what one step over all of it needs to know."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from eray._slurm import variables as v
from eray._slurm.counts import expand_counts
from eray._slurm.environment import Job, job_nodes, node_groups, read_job
from eray.errors import SlurmFormatError, SlurmMissingError


@dataclass(frozen=True)
class Allocation:
    """A job's nodes in Slurm's order; ``groups`` are the nodes of each component, empty unless the job is het.

    ``gpus_per_node`` is what every node has (the smallest count of an uneven job), None where Slurm does not say.
    """

    job: Job
    nodes: tuple[str, ...]
    het_groups: tuple[int, ...]
    groups: tuple[tuple[str, ...], ...]
    gpus_per_node: int | None
    cpus_per_node: tuple[int, ...]
    cluster: str

    @property
    def known_gpus(self) -> int | None:
        """How many GPUs `eray run` gets on each node, None where the environment cannot tell."""
        return None if self.het_groups else self.gpus_per_node or 0


def read_allocation(environ: Mapping[str, str]) -> Allocation:
    """Read the allocation from the environment of a batch script or shell.

    Raises:
        SlurmMissingError: there is no job id or no node list.
        SlurmFormatError: a variable holds text that is not what Slurm writes there.
        SlurmContradictionError: the node list and its count disagree.
    """
    job, nodes = read_job(environ, in_step=False), job_nodes(environ)
    if job is None or not nodes:
        missing = [names[0] for names, known in ((v.JOB_ID, job), (v.JOB_NODELIST, nodes)) if not known]
        raise SlurmMissingError(missing, "an allocation has them; is this a shell or batch script of a Slurm job?")
    groups = node_groups(environ)
    return Allocation(
        job=job,
        nodes=nodes,
        het_groups=tuple(range(len(groups))),
        groups=groups,
        gpus_per_node=_gpus_per_node(environ, nodes),
        cpus_per_node=_cpus_per_node(environ, len(groups)),
        cluster=job.cluster,
    )


def tasks_per_node(environ: Mapping[str, str], allocation: Allocation) -> tuple[int, ...]:
    """Return how many tasks `srun` without options starts on each node; empty where the environment does not say.

    Raises:
        SlurmFormatError: the counts are not what Slurm writes there.
    """
    text = environ.get(v.TASKS_PER_NODE)
    if not text or allocation.het_groups:
        return ()
    counts = expand_counts(text, v.TASKS_PER_NODE)
    if len(counts) != len(allocation.nodes):
        return ()
    return counts if environ.get(v.NTASKS) else (1,) * len(counts)  # else it is how many CPUs a whole node has


def node_aliases(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the address of each node that Slurm's alias list gives: cloud nodes, whose names may not resolve.

    Raises:
        SlurmFormatError: an entry is not ``name:address:hostname``.
    """
    text = environ.get(v.NODE_ALIASES, "")
    if text in ("", "(null)"):
        return {}
    addresses = {}
    for entry in text.split(","):
        match = re.fullmatch(r"([^:\[\]]+):(?:\[([0-9A-Fa-f:.]+)\]|([^:\[\]]+)):[^:]+", entry)
        if not match:
            raise SlurmFormatError(v.NODE_ALIASES, text[:200], f"{entry!r} is not name:address:hostname")
        addresses[match[1]] = match[2] or match[3]
    return addresses


def _cpus_per_node(environ: Mapping[str, str], group_count: int) -> tuple[int, ...]:
    for suffix in v.HET_SUFFIXES:
        names = [f"{v.JOB_CPUS_PER_NODE}{suffix}{number}" for number in range(group_count)]
        if names and all(environ.get(name) for name in names):
            return tuple(count for name in names for count in expand_counts(environ[name], name))
    text = environ.get(v.JOB_CPUS_PER_NODE)
    return expand_counts(text, v.JOB_CPUS_PER_NODE) if text and not group_count else ()


def _gpus_per_node(environ: Mapping[str, str], nodes: tuple[str, ...]) -> int | None:
    here = v.read_whole(environ, v.GPUS_ON_NODE)  # the batch script's or the interactive step's own node
    total, per_task = _typed_count(environ, v.GPUS), _typed_count(environ, v.GPUS_PER_TASK)
    tasks = expand_counts(environ[v.TASKS_PER_NODE], v.TASKS_PER_NODE) if environ.get(v.TASKS_PER_NODE) else ()
    counts = [here, _typed_count(environ, v.GPUS_PER_NODE)]
    if per_task and tasks:
        counts.append(per_task * min(tasks))  # -n4 --gpus-per-task=1 may pack 3 + 1: only 1 is everywhere
    if total and here and total != here * len(nodes):
        counts.append(max(1, total - here * (len(nodes) - 1)))  # -N2 --gpus=6 is 4 + 2
    if total and not here:
        counts.append(max(1, total // len(nodes)))
    return min((count for count in counts if count), default=None)


def _typed_count(environ: Mapping[str, str], name: str) -> int | None:
    text = environ.get(name)
    if not text:
        return None
    match = re.fullmatch(r"(?:[^:,]+:)?([0-9]{1,6})(?:,(?:[^:,]+:)?[0-9]{1,6})*", text)
    if not match:
        raise SlurmFormatError(name, text, "must be a number of GPUs such as 4 or a100:4")
    return sum(int(part.rpartition(":")[2]) for part in text.split(","))
