"""What Slurm's variables say about this process."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from eray._core.counted import counted
from eray._slurm import variables as v
from eray._slurm.hostlist import expand_hostlist
from eray._slurm.task import Task, read_task
from eray._slurm.visibility import visible_tokens
from eray.errors import SlurmFormatError, SlurmMissingError

__all__ = [
    "SHELLS",
    "Job",
    "Mode",
    "SlurmEnvironment",
    "Task",
    "job_nodes",
    "node_groups",
    "read_environment",
    "read_job",
    "read_mode",
]


class Mode(StrEnum):
    """What kind of process this is."""

    STEP = "step"
    BATCH_SHELL = "batch-shell"
    INTERACTIVE_SHELL = "interactive-shell"
    ALLOCATION_SHELL = "allocation-shell"
    FOREIGN_LAUNCHER = "foreign-launcher"
    RAY_WORKER = "ray-worker"
    SINGLE = "single"
    NONE = "none"


SHELLS = (Mode.BATCH_SHELL, Mode.INTERACTIVE_SHELL, Mode.ALLOCATION_SHELL)


@dataclass(frozen=True)
class Job:
    """The job around this process; ``step`` only in a step, ``cluster`` empty where Slurm does not say."""

    id: str
    step: str | None
    restart: int
    cluster: str


@dataclass(frozen=True)
class SlurmEnvironment:
    """What the environment says: ``nodes`` are the step's in a step, else the job's, empty if unknown."""

    mode: Mode
    job: Job | None
    nodes: tuple[str, ...]
    task: Task | None
    node_name: str | None
    gpus_on_node: int | None
    cpus_on_node: int | None
    memory_mb_on_node: int | None
    visible: tuple[str, ...] | None
    notices: tuple[str, ...]
    launcher: tuple[str, str] | None = None  # the variable and value by which another launcher gave this process a rank


def read_mode(environ: Mapping[str, str]) -> Mode:
    """Tell what kind of process this is, by the variables that are there."""
    if any(environ.get(name) for name in v.RAY_MARKERS):
        return Mode.RAY_WORKER
    step_id = v.first_set(environ, v.STEP_ID)[1]
    nodes_known = bool(
        v.first_set(environ, v.JOB_NODELIST)[1] or any(environ.get(name) for name in _group_lists(environ))
    )
    if not (v.first_set(environ, v.JOB_ID)[1] or step_id or nodes_known):
        return Mode.NONE
    in_step = bool(step_id and environ.get(v.STEP_NODELIST))
    if foreign_launcher(environ):
        return Mode.FOREIGN_LAUNCHER
    if step_id == v.INTERACTIVE_STEP:
        return Mode.INTERACTIVE_SHELL
    if in_step:
        return Mode.STEP
    if environ.get(v.PROCID):
        return Mode.INTERACTIVE_SHELL if environ.get(v.PTY_PORT) else Mode.BATCH_SHELL
    return Mode.ALLOCATION_SHELL if nodes_known else Mode.SINGLE


def read_environment(environ: Mapping[str, str]) -> SlurmEnvironment:
    """Read what Slurm says about this process.

    A process is a task only if the step's id and node list are both set and the step is not salloc's interactive one;
    then only the step's variables count, because the job's are often stale in it.

    Raises:
        SlurmFormatError: a variable holds text that is not what Slurm writes there.
        SlurmMissingError: a variable that every task has is absent.
        SlurmContradictionError: two variables cannot both be true.
    """
    mode = read_mode(environ)
    _check_step_is_whole(environ, mode)
    task = read_task(environ) if mode is Mode.STEP else None
    described = mode not in (Mode.RAY_WORKER, Mode.NONE)  # a raylet's task variables are not its workers'
    nodes = task.nodes if task else job_nodes(environ) if described else ()
    cpus = v.read_whole(environ, v.CPUS_ON_NODE) if described else None
    gpus = v.read_whole(environ, v.GPUS_ON_NODE) if described else None
    return SlurmEnvironment(
        mode=mode,
        job=read_job(environ, in_step=mode is Mode.STEP),
        nodes=nodes,
        task=task,
        node_name=environ.get(v.NODENAME) or (task.node if task else None),
        gpus_on_node=gpus,
        cpus_on_node=cpus,
        memory_mb_on_node=_memory_mb(environ, cpus, gpus) if described else None,
        visible=visible_tokens(environ),
        notices=_notices(environ, task),
        launcher=foreign_launcher(environ) if mode is Mode.FOREIGN_LAUNCHER else None,
    )


def read_job(environ: Mapping[str, str], *, in_step: bool) -> Job | None:
    """Read the job's identity, None where there is no job id."""
    name, job_id = v.first_set(environ, v.JOB_ID)
    if not job_id:
        return None
    if not re.fullmatch(r"[0-9]{1,20}", job_id):
        raise SlurmFormatError(
            name, job_id, "must be a number (squeue's 12_3 and 12+1 name array elements and components)"
        )
    step = v.first_set(environ, v.STEP_ID)[1] if in_step else None
    return Job(job_id, step or None, v.read_whole(environ, v.RESTART_COUNT) or 0, environ.get(v.CLUSTER_NAME, ""))


def job_nodes(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the job's nodes in Slurm's order: all components of a heterogeneous job, empty if unknown."""
    name, text = v.first_set(environ, v.JOB_NODELIST)
    nodes = tuple(expand_hostlist(text, name))
    count = v.read_whole(environ, *v.JOB_NUM_NODES[:1])
    if text and count is not None and count != len(nodes):
        raise v.contradiction(
            environ, (name, v.JOB_NUM_NODES[0]), f"the list has {counted(len(nodes), 'name')}, not {count}"
        )
    groups = node_groups(environ)
    return tuple(node for group in groups for node in group) if groups else nodes


def node_groups(environ: Mapping[str, str]) -> tuple[tuple[str, ...], ...]:
    """Return the nodes of each component of a heterogeneous job, in order; empty for any other job."""
    return tuple(tuple(expand_hostlist(environ[name], name)) for name in _group_lists(environ))


def foreign_launcher(environ: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the (variable, value) by which another launcher than srun gave this process its rank, or None."""
    for rank, size in v.LAUNCHERS:
        own = environ.get(v.PROCID) == environ.get(rank) and environ.get(v.STEP_NUM_TASKS) == environ.get(size)
        if environ.get(rank) and not own:
            return rank, environ[rank]
    return None


def _group_lists(environ: Mapping[str, str]) -> list[str]:
    for suffix in v.HET_SUFFIXES:
        prefix = v.JOB_NODELIST[0] + suffix
        names = [name for name in environ if re.fullmatch(prefix + "[0-9]{1,4}", name)]
        if names:
            return sorted(names, key=lambda name: int(name.removeprefix(prefix)))
    return []


def _check_step_is_whole(environ: Mapping[str, str], mode: Mode) -> None:
    step_id = v.first_set(environ, v.STEP_ID)[1]
    if mode in SHELLS and step_id not in ("", v.INTERACTIVE_STEP) and environ.get(v.PROCID):
        raise SlurmMissingError((v.STEP_NODELIST,), f"{v.STEP_ID[0]}={step_id!r} names a step, and every step has it")


def _memory_mb(environ: Mapping[str, str], cpus: int | None, gpus: int | None) -> int | None:
    for name, units in zip(v.MEMORY, (1, cpus, gpus), strict=True):
        text = environ.get(name, "")
        if not text or not units:
            continue
        match = re.fullmatch(r"([0-9]{1,15})([KMGT]?)", text, re.IGNORECASE)
        if not match:
            raise SlurmFormatError(name, text, "must be a number of megabytes")
        scale = {"K": 1 / 1024, "": 1, "M": 1, "G": 1024, "T": 1024**2}[match[2].upper()]
        return int(int(match[1]) * scale) * units or None  # 0 asks for all the memory there is
    return None


def _notices(environ: Mapping[str, str], task: Task | None) -> tuple[str, ...]:
    if task is None or task.process_count == 1 or not environ.get(v.PTY_PORT):
        return ()
    return (
        f"{v.PTY_PORT} is set and the step has {task.process_count} tasks: this looks like `srun --pty`, where only "
        "task 0 has the terminal. For one process here start `srun -n1 --pty`, or set ERAY_WORLD=shell, "
        f"ERAY_PROCESS_INDEX=0 and ERAY_PROCESS_COUNT=1; to run all {task.process_count}, start without --pty",
    )
