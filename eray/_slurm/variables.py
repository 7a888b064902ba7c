"""The only table of SLURM_* names, and how their values are read."""

import re
from collections.abc import Mapping, Sequence

from eray.errors import SlurmContradictionError, SlurmFormatError

# Slurm's names: sbatch(1) and srun(1), "OUTPUT ENVIRONMENT VARIABLES". Where two stand, the second is the older name.
JOB_ID = ("SLURM_JOB_ID", "SLURM_JOBID")
STEP_ID = ("SLURM_STEP_ID", "SLURM_STEPID")
RESTART_COUNT = "SLURM_RESTART_COUNT"  # unset in the job's first life
CLUSTER_NAME = "SLURM_CLUSTER_NAME"
CONF = "SLURM_CONF"
STEP_NODELIST = "SLURM_STEP_NODELIST"
STEP_NUM_NODES = "SLURM_STEP_NUM_NODES"
STEP_NUM_TASKS = "SLURM_STEP_NUM_TASKS"
STEP_TASKS_PER_NODE = "SLURM_STEP_TASKS_PER_NODE"
PROCID = "SLURM_PROCID"
NODEID = "SLURM_NODEID"
LOCALID = "SLURM_LOCALID"
GLOBAL_TASKS = "SLURM_GTIDS"  # the indexes of all tasks of the step on this node
NODENAME = "SLURMD_NODENAME"
JOB_NODELIST = ("SLURM_JOB_NODELIST", "SLURM_NODELIST")
JOB_NUM_NODES = ("SLURM_JOB_NUM_NODES", "SLURM_NNODES")
JOB_CPUS_PER_NODE = "SLURM_JOB_CPUS_PER_NODE"
NTASKS = "SLURM_NTASKS"
TASKS_PER_NODE = "SLURM_TASKS_PER_NODE"
HET_SUFFIXES = ("_HET_GROUP_", "_PACK_GROUP_")  # PACK before Slurm 20.02
DISTRIBUTION, HOSTFILE = "SLURM_DISTRIBUTION", "SLURM_HOSTFILE"
PTY_PORT = "SLURM_PTY_PORT"
CPUS_ON_NODE = "SLURM_CPUS_ON_NODE"
CPU_BIND_TYPE, CPU_BIND_LIST = "SLURM_CPU_BIND_TYPE", "SLURM_CPU_BIND_LIST"
MEM_PER_NODE, MEM_PER_CPU, MEM_PER_GPU = "SLURM_MEM_PER_NODE", "SLURM_MEM_PER_CPU", "SLURM_MEM_PER_GPU"
MEMORY = (MEM_PER_NODE, MEM_PER_CPU, MEM_PER_GPU)
GPUS_ON_NODE = "SLURM_GPUS_ON_NODE"
GPUS, GPUS_PER_NODE, GPUS_PER_TASK = "SLURM_GPUS", "SLURM_GPUS_PER_NODE", "SLURM_GPUS_PER_TASK"
NODE_ALIASES = "SLURM_NODE_ALIASES"  # cloud nodes, until Slurm 23.02
INTERACTIVE_STEP = "4294967290"  # salloc's own step, slurm.h: SLURM_INTERACTIVE_STEP
# Facts about the job that no srun option reads, so that a clean step may keep them.
JOB_FACTS = ("SLURM_SUBMIT_DIR", "SLURM_SUBMIT_HOST", "SLURM_TMPDIR", "SLURM_JOB_START_TIME", "SLURM_JOB_END_TIME")
ARRAY_PREFIX = "SLURM_ARRAY_"

# What only the task that has them may read: a daemon that it starts must not hand them on.
TASK_RANKS: tuple[str, ...] = (
    *(PROCID, NODEID, LOCALID, GLOBAL_TASKS, "SLURM_TASK_PID", "SLURM_STEP_GPUS"),
    *(*STEP_ID, STEP_NODELIST, STEP_NUM_NODES, STEP_NUM_TASKS, STEP_TASKS_PER_NODE),
)

# Ray sets the first in its workers and the second in a job's driver (ray/_private/ray_constants.py, worker_pool.cc).
RAY_MARKERS = ("RAY_RAYLET_PID", "RAY_JOB_CONFIG_JSON_ENV_VAR")
# Rank and size as other launchers set them; srun's PMI plugins set PMI_* too, then equal to Slurm's own.
LAUNCHERS = (
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
)


def read_whole(environ: Mapping[str, str], *names: str) -> int | None:
    """Return the first of these variables that is set, as a whole number; None where none is.

    Raises:
        SlurmFormatError: it is set to something else.
    """
    name, text = first_set(environ, names)
    if text and not re.fullmatch(r"[0-9]{1,15}", text):
        raise SlurmFormatError(name, text, "must be a whole number, 0 or more")
    return int(text) if text else None


def first_set(environ: Mapping[str, str], names: Sequence[str]) -> tuple[str, str]:
    """Return name and value of the first variable that is set, else the first name and the empty text."""
    return next(((name, environ[name]) for name in names if environ.get(name)), (names[0], ""))


def contradiction(environ: Mapping[str, str], names: Sequence[str], reason: str) -> SlurmContradictionError:
    """Make the error that names these variables, which are set, with their values."""
    return SlurmContradictionError([(name, environ[name][:200]) for name in names], reason)
