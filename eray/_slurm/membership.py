"""Whether a process may stand for its job: alone, by the job's key, or as the one that warns."""

from collections.abc import Mapping

from eray._settings import misspelled
from eray._slurm import variables as v
from eray._slurm.environment import SHELLS, Job, Mode, SlurmEnvironment, read_mode
from eray._slurm.hostlist import fold_hostlist
from eray.errors import ForeignLauncherError, NotATaskError, SlurmMissingError


def require_job(environment: SlurmEnvironment) -> Job:
    """Return the job; without its id a cluster has no key, so that two could meet.

    Raises:
        SlurmMissingError: there is no job id.
    """
    if environment.job is None:
        raise SlurmMissingError(
            v.JOB_ID[:1], f"this is a {environment.mode}, and the cluster's key is made of the job id"
        )
    return environment.job


def is_inside(environment: SlurmEnvironment, hostname: str) -> bool:
    """Tell whether this host is one of the job's nodes: a plain salloc shell may run on the login node."""
    names = {hostname, hostname.split(".")[0]}
    return environment.node_name is not None or any(
        node in names or node.split(".")[0] in names for node in environment.nodes
    )


def check_lone_process(environment: SlurmEnvironment, hostname: str) -> None:
    """Refuse to run a single process where the environment names more: a silent world of one would be wrong.

    Raises:
        NotATaskError: this is a shell or batch script of a job with several nodes, or a shell on the login node.
        ForeignLauncherError: mpirun or the like started this process.
    """
    if environment.mode is Mode.FOREIGN_LAUNCHER:
        raise foreign_error(environment)
    if environment.mode not in SHELLS:
        return
    job = environment.job.id if environment.job else "?"
    if len(environment.nodes) > 1:
        reason = f"the job has {len(environment.nodes)} nodes, {fold_hostlist(environment.nodes)}"
        raise NotATaskError(environment.mode, job, reason)
    if not is_inside(environment, hostname):
        raise NotATaskError(
            environment.mode, job, f"{hostname} is not a node of the job ({fold_hostlist(environment.nodes)})"
        )


def foreign_error(environment: SlurmEnvironment) -> ForeignLauncherError:
    """Make the error for a process that another launcher started."""
    variable, value = environment.launcher or ("", "")
    reason = f"{variable}={value} is its rank, and Slurm's variables describe the launcher's daemon"
    return ForeignLauncherError("mpirun", reason)


def head_notice(head: str | None, environment: SlurmEnvironment) -> list[str]:
    """Return what is to be said of an ERAY_HEAD that is no node's name; only the first node can check it."""
    if head is None or head in environment.nodes:
        return []
    if not environment.nodes:
        return [f"ERAY_HEAD={head} has no effect outside a job"]
    other = f"is no node of the job ({fold_hostlist(environment.nodes)}), so it must be another name or an address of"
    return [f"ERAY_HEAD={head} {other} {environment.nodes[0]}; that is checked there"]


def misspellings(environ: Mapping[str, str]) -> list[str]:
    """Return what is to be said of misspelled variables, in one process of a step or world for all.

    What starts processes has said it before them: `eray run`, and whoever started the Ray around a worker.
    """
    rank = environ.get("ERAY_PROCESS_INDEX") or environ.get(v.PROCID) or "0"
    if rank != "0" or environ.get("ERAY_RUN_DIR") or read_mode(environ) is Mode.RAY_WORKER:
        return []
    return misspelled(environ)
