"""Find the one cluster that a command means: on this machine, or by what its head wrote into the job directory.

A cluster is never guessed: it is the one of the job around, the one that was named, or the only one of this machine.
"""

import os
import socket
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from eray._bringup import Site
from eray._core import naming
from eray._core.access import BY_OPTION, Access, Door, Life, derive_token, no_such_cluster, remedy_of, the_only_one
from eray._core.nodespec import BEACON_FILE, NODE_FILE
from eray._io import clock, files, lives, net
from eray._io.patience import answers
from eray._io.secret import SECRET_NAME, read_secret
from eray.errors import ClusterLostError, DirectoryError, RayAttachError, SecretError, UsageError

T = TypeVar("T")

PATIENCE_S = 3.0
DIAL_S = 3.0


def find(site: Site, wanted: str | None) -> Access:
    """Return the cluster of the job ``wanted``; of the job around where that is None; else the one of this machine.

    ``wanted`` may also be the name of a cluster of this machine (``local-1a2b3c4d``), or ``cluster-job`` where two of
    Slurm's clusters share a home.

    Raises:
        RayAttachError: there is none.
        UsageError: there are several.
        DirectoryError: the home does not answer, and there is none on this machine.
    """
    job, here = site.slurm.job, living(site)
    if wanted is None and job is None:
        takes_jobs = [access for access in here if access.job is None and access.dashboard]
        found = the_only_one(takes_jobs, BY_OPTION, clock.unix())
        if found is None:
            raise RayAttachError(
                socket.gethostname(),
                "no cluster of yours that takes Ray Jobs runs on this machine",
                "start one by `eray up`, or name a Slurm job with `--job`",
            )
        return found
    own = wanted is None or (job is not None and wanted == job.id)
    name = job.id if wanted is None and job is not None else str(wanted)
    restart = job.restart if own and job is not None else None
    fitting = [access for access in here if access.key == name and restart in (None, access.restart)]
    if fitting:
        return max(fitting, key=lambda access: access.restart)
    return _published(site, name, restart, here)


def living(site: Site) -> list[Access]:
    """Return the clusters of this user that have a living supervisor on this machine.

    Raises:
        DirectoryError: the directory of this user's clusters is not safe.
    """
    written = _written_by_the_living(site.settings.tmpdir, NODE_FILE)
    return [access for about in written if (access := Access.from_json(about))]


def living_doors(tmpdir: str) -> list[Door]:
    """Return where those listen, also before their Ray is up.

    Raises:
        DirectoryError: the directory of this user's clusters is not safe.
    """
    return [door for about in _written_by_the_living(tmpdir, BEACON_FILE) if (door := Door.from_json(about))]


def _written_by_the_living(tmpdir: str, name: str) -> Iterator[dict[str, Any]]:
    """Yield the files of this name of this user's living supervisors on this machine."""
    parent = naming.user_directory(tmpdir, os.getuid())
    if not os.path.lexists(parent):
        return
    files.check_private(parent)
    for directory in sorted(os.listdir(parent)):
        about = files.read_json(os.path.join(parent, directory, name))
        if about is not None and lives.is_alive(about):
            yield about


def read_jobs(site: Site, read: Callable[[str], T]) -> tuple[str, T]:
    """Return the parent of the job directories, and what ``read`` makes of it.

    Raises:
        DirectoryError: the home does not answer.
    """
    jobs = os.path.join(os.path.abspath(os.path.expanduser(site.settings.state_dir)), "jobs")
    answered = answers({jobs: lambda: read(jobs)}, PATIENCE_S)
    if jobs not in answered:
        remedy = "see whether its file server is up, or run this on a node of the job"
        raise DirectoryError(jobs, f"does not answer for {PATIENCE_S:g} s", remedy)
    return jobs, answered[jobs]


def require_alive(access: Access, address: str) -> None:
    """Check that something answers at an address of the cluster: Ray itself finds that out slowly (FACTS R25).

    Raises:
        ClusterLostError: nothing does.
        RayAttachError: it is an address for its own node only.
    """
    host, _, port = address.rpartition(":")
    if host.startswith("127.") and not access.at_head:
        raise RayAttachError(
            access.node,
            f"{access} listens at {address}, which only that node reaches",
            "run this there; `eray up` without ERAY_AUTH=disabled, on a node whose name has an address, listens to all",
        )
    if not (port.isdigit() and net.port_is_open(host.strip("[]"), int(port), DIAL_S)):
        raise ClusterLostError(access.node, f"{access} is gone: nothing answers at {address}", access.remedy)


def token_of(site: Site, access: Life) -> str | None:
    """Return the token of a cluster, None where it asks for none: read on its nodes, derived elsewhere.

    Raises:
        SecretError: the secret from which it follows is not here.
        ClusterLostError: the cluster has just ended.
    """
    if access.auth == "disabled":
        return None
    if access.token_path is not None:
        try:
            with open(access.token_path, encoding="ascii") as stream:
                return stream.read()
        except OSError as exc:
            raise ClusterLostError(
                access.node, f"{access} has no token any more ({exc.strerror})", "see whether it still runs"
            ) from exc
    path = os.path.join(os.path.abspath(os.path.expanduser(site.settings.state_dir)), SECRET_NAME)
    kept = answers({path: lambda: read_secret(path)}, PATIENCE_S).get(path)
    token = derive_token(access, site.settings.secret, kept)
    if token is None:
        what = "ERAY_SECRET here is" if site.settings.secret is not None else "this is"
        raise SecretError(
            path,
            f"{what} not the secret that {access} was started with, so its token does not follow from it",
            "set ERAY_SECRET here as it was set for the job. Where it was not set, the job could not use this file: "
            "run this command on a node of the job, or set ERAY_SECRET to 32 characters or more in both places",
        )
    return token


def _published(site: Site, name: str, restart: int | None, here: Sequence[Access]) -> Access:
    jobs, found = read_jobs(site, lambda path: _read(path, name))
    job = site.slurm.job
    if restart is not None and job is not None and job.cluster:
        found = {path: access for path, access in found.items() if access.cluster in ("", job.cluster)}
    if len(found) > 1:
        names = ", ".join(os.path.basename(os.path.dirname(path)) for path in found)
        raise UsageError(f"several of Slurm's clusters had a job {name}: choose one of {names} with `--job`")
    for path, access in found.items():
        if restart in (None, access.restart):
            return access
        raise RayAttachError(
            socket.gethostname(),
            f"{path} is of an earlier life of job {name} (restart {access.restart}, this is {restart})",
            "start its cluster by `eray up` in the job",
        )
    own = job is not None and job.id == name
    remedy = "start one by `eray up` in the job" if own else remedy_of(name)
    raise no_such_cluster(name, here, clock.unix(), node=socket.gethostname(), where=jobs, remedy=remedy)


def _read(jobs: str, name: str) -> dict[str, Access]:
    """Return the clusters of a job by the path of their file."""
    found = {}
    for directory in sorted(os.listdir(jobs)) if os.path.isdir(jobs) else []:
        if name not in (directory, naming.job_of_directory(directory)):
            continue
        path = os.path.join(jobs, directory, naming.job_file("cluster", ""))
        about = files.read_json(path)
        access = Access.from_json(about) if about is not None else None
        if access is not None:
            found[path] = access
    return found
