"""What JAX's own rendezvous needs, from one task's variables alone: where process 0 is, and this task's devices.

``connect()`` asks the coordinator instead, which knows what every process sees and chooses a port that is free.
"""

from collections.abc import Mapping

from eray._core.devices import NodeView, ProcessView, Share, plan_node
from eray._core.naming import host_port
from eray._slurm import variables as v
from eray._slurm.allocation import node_aliases
from eray._slurm.environment import Mode, SlurmEnvironment, Task, job_nodes, read_job, read_mode
from eray._slurm.hostlist import expand_hostlist
from eray._slurm.task import read_task
from eray.errors import DevicePlanError, SlurmFormatError, SlurmMissingError

JAX_PORTS = 61440, 65535
"""Where JAX puts its port: the upper 4,096 (jax/_src/clusters/slurm_cluster.py)."""
BY_CONNECT = "call eray.connect(), which asks the processes themselves, or give coordinator_address"


def coordinator_address(environ: Mapping[str, str], *, port: str | None = None, host_file: str = "") -> str:
    """Return ``host:port`` of the node of process 0; in a shell or batch script of the first node of its job.

    Args:
        environ: the process's environment.
        port: instead of the one that follows from the job id.
        host_file: the text of SLURM_HOSTFILE, which alone tells where process 0 is in an arbitrary distribution.

    Raises:
        SlurmMissingError: no variable has the node list, or the job id.
        SlurmFormatError: one of them is malformed.
    """
    in_step = read_mode(environ) is Mode.STEP
    task = read_task(environ) if in_step else None
    nodes = task.nodes if task is not None else job_nodes(environ)
    if not nodes:
        raise SlurmMissingError((v.STEP_NODELIST, *v.JOB_NODELIST), f"no list of nodes is there; {BY_CONNECT}")
    job = read_job(environ, in_step=in_step)
    if port is None:
        if job is None:
            raise SlurmMissingError(v.JOB_ID, f"the port follows from the job id; {BY_CONNECT}")
        low, high = JAX_PORTS
        port = str(low + int(job.id) % (high - low + 1))
    elif not port.isdigit() or not 0 < int(port) < 65536:
        raise SlurmFormatError("JAX_COORDINATOR_PORT", port, "must be a port, 1 to 65535")
    name = nodes[0] if task is None else _node_of_process_0(environ, task, host_file)
    return host_port(node_aliases(environ).get(name, name), port)


def is_task(environ: Mapping[str, str]) -> bool:
    """Tell whether this process is a task of a step. One that ``eray run`` started has the variables of another."""
    return read_mode(environ) is Mode.STEP and not environ.get("ERAY_RUN_DIR")


def task_of(environ: Mapping[str, str]) -> Task:
    """Return this task's place in its step.

    Raises:
        SlurmMissingError: this is no task, or one of its variables is gone.
        SlurmFormatError, SlurmContradictionError: the variables cannot be read.
    """
    if not is_task(environ):
        raise SlurmMissingError(
            (v.STEP_ID[0], v.STEP_NODELIST), "this process is no task of a Slurm step; start it by srun"
        )
    return read_task(environ)


def own_share(slurm: SlurmEnvironment, *, override: str | None, hardware_count: int | None) -> Share | None:
    """Return this task's part of what it sees, by the device plan's rules; None where one task alone cannot know it.

    Raises:
        DevicePlanError: the devices do not divide among the node's tasks.
    """
    task = slurm.task
    if task is None:
        return None
    view = NodeView(
        node=task.node,
        local_count=task.local_count,
        in_step=True,
        gpus_on_node=slurm.gpus_on_node,
        hardware_count=hardware_count,
        override=override,
        processes=(ProcessView(task.local_index, slurm.visible),),
    )
    try:
        return plan_node(view)[0]
    except DevicePlanError as exc:
        if exc.code == "devices-unknown":
            return None
        raise


def _node_of_process_0(environ: Mapping[str, str], task: Task, host_file: str) -> str:
    """Return the node of process 0: the first, but where the distribution is arbitrary (FACTS S13)."""
    here = task.indexes_on_node
    if here is not None and 0 in here:
        return task.node
    is_arbitrary = environ.get(v.DISTRIBUTION, "").startswith("arbitrary") or environ.get(v.HOSTFILE)
    if not is_arbitrary and (here is None or task.node_rank != 0):
        return task.nodes[0]
    possible = [name for name in task.nodes if here is None or name != task.node]
    if len(possible) == 1:
        return possible[0]
    named = _first_name(host_file)
    if named in possible:
        return named
    raise SlurmMissingError(
        (v.HOSTFILE,),
        f"the distribution is arbitrary, and only that file tells on which of {len(possible)} nodes process 0 is; "
        f"{BY_CONNECT}",
    )


def _first_name(host_file: str) -> str:
    names = host_file.split()
    return expand_hostlist(names[0].partition("*")[0], v.HOSTFILE)[0] if names else ""
