"""The cluster of this process's own environment: of the ``eray run`` around it, its step, its job or this machine."""

import os
import socket
from collections.abc import Mapping, MutableMapping
from dataclasses import asdict
from typing import Any

from eray._bringup import Site
from eray._clusters import living
from eray._core import naming
from eray._core.access import BY_EXPORTS, the_only_one
from eray._core.nodespec import NODE_FILE, SOCKET_NAME
from eray._core.timing import Deadline
from eray._io import clock, files
from eray._ray import attach
from eray._ray.commands import driver_variables
from eray._ray.notices import say
from eray._reach import await_word, open_link
from eray._starting import Start, start_here, when_started
from eray.errors import RayAttachError


def attach_own(
    site: Site,
    environ: MutableMapping[str, str],
    *,
    namespace: str = naming.NAMESPACE,
    options: Mapping[str, Any] | None = None,
) -> str:
    """Attach this process as a driver to the cluster of its environment, and return the address of its GCS.

    Raises:
        RayAttachError, ClusterLostError, UsageError: there is none, it cannot be reached, or there are several.
    """
    about = _access(site)
    attach.adopt(environ, driver_variables(about["auth"], about["token_path"]))
    address = str(about["gcs_address"])
    attach.attach(address, node=socket.gethostname(), namespace=namespace, options=options)
    return address


def _access(site: Site) -> dict[str, Any]:
    """Return how Ray is reached: from the supervisor that started this process, or from its file on this node."""
    run_dir = site.settings.run_dir
    if run_dir is None:
        return when_started(site, lambda: _node_file(site), lambda: start_of_own(site))
    # `eray run` starts its processes beside Ray: the cluster may not be ready yet.
    link = open_link(os.path.join(run_dir, SOCKET_NAME), site.node)
    try:
        link.send({"type": "hello", "world": None, "process_index": None})
        deadline = Deadline.after(site.settings.cluster_timeout_s, now=clock.monotonic())
        ready = await_word(link, "ready", site.node, deadline, say)
        link.send({"type": "left"})
    finally:
        link.close()
    return ready


def _node_file(site: Site) -> dict[str, Any]:
    about = find_node_file(site)
    if about is not None:
        return about
    directories = _directories(site)
    looked = f"no cluster's file in {', '.join(directories)}" if directories else "no cluster in the environment"
    raise RayAttachError(
        socket.gethostname(), looked, "start one by `eray up` or `eray run`, or set RAY_ADDRESS to its host:port"
    )


def find_node_file(site: Site) -> dict[str, Any] | None:
    """Return what this node's supervisor says of how Ray is reached: the step's, the job's, or `eray up` here."""
    if site.slurm.job is None:
        staying = [access for access in living(site) if access.job is None and access.stays]
        alone = the_only_one(staying, BY_EXPORTS, clock.unix())
        return None if alone is None else asdict(alone)
    for directory in _directories(site):
        about = files.read_json(os.path.join(directory, NODE_FILE))
        if about is not None:
            return about
    return None


def start_of_own(site: Site) -> Start | None:
    """Return that cluster where it is just starting on this node."""
    return start_here(site, None if site.slurm.job is None else _keys(site))


def _directories(site: Site) -> list[str]:
    restart = 0 if site.slurm.job is None else site.slurm.job.restart
    return [naming.run_directory(site.settings.tmpdir, os.getuid(), key, restart) for key in _keys(site)]


def _keys(site: Site) -> list[str]:
    job = site.slurm.job
    if job is None:
        return []
    steps = [naming.cluster_key(job.id, job.step)] if job.step else []
    return [*steps, naming.cluster_key(job.id, None)]
