"""``attach()``: a driver of the cluster, without a place in any world."""

import os
import socket
from collections.abc import MutableMapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from eray._bringup import Site
from eray._clusters import living
from eray._core import naming
from eray._core.access import the_only_one
from eray._core.nodespec import NODE_FILE, SOCKET_NAME
from eray._core.timing import Deadline
from eray._identity import read_site
from eray._io import clock, files
from eray._ray.notices import say
from eray._reach import await_word, open_link
from eray.errors import ClusterLostError, RayAttachError

if TYPE_CHECKING:
    from eray._core.topology import Topology


@dataclass(frozen=True)
class Cluster:
    """A cluster as a driver sees it. ``coordinator`` is the actor's handle, ``address`` that of Ray's GCS."""

    address: str
    coordinator: Any

    def topology(self) -> "Topology":
        """Return the cluster as the coordinator sees it now.

        Raises:
            ClusterLostError: the coordinator does not answer.
        """
        from eray._ray.client import CoordinatorClient

        return CoordinatorClient(self.coordinator).topology()


def attach() -> Cluster:
    """Attach this process to its cluster as a driver.

    That is the Ray of this process or of RAY_ADDRESS where there is one, else the cluster of the ``eray run`` that
    started this process, when it is ready, else that of the Slurm job around it, else the only one of `eray up` on this
    machine.

    Raises:
        RayAttachError: there is no cluster, or it cannot be reached.
        ClusterLostError: it has no coordinator.
        UsageError: several clusters run on this machine.
    """
    from eray._ray import attach as ray_attach
    from eray._ray import foreign
    from eray._ray.asking import find_coordinator
    from eray._ray.commands import driver_variables

    environ: MutableMapping[str, str] = os.environ
    if ray_attach.current_address() is not None or environ.get("RAY_ADDRESS"):
        address, _ = foreign.attach(environ.get("RAY_ADDRESS") or None)
    else:
        about = _access(read_site(environ))
        ray_attach.adopt(environ, driver_variables(about["auth"], about["token_path"]))
        address = about["gcs_address"]
        ray_attach.attach(address, node=socket.gethostname())
    handle = find_coordinator()
    if handle is None:
        raise ClusterLostError(socket.gethostname(), "the cluster has no coordinator", "see the log of eray there")
    return Cluster(address, handle)


def coordinator() -> Any:
    """Return the handle of the coordinator, attaching to the cluster where this process is not.

    Raises:
        RayAttachError, ClusterLostError: as in ``attach``.
    """
    return attach().coordinator


def _access(site: Site) -> dict[str, Any]:
    """Return how Ray is reached: from the supervisor that started this process, or from its file on this node."""
    run_dir = site.settings.run_dir
    if run_dir is None:
        return _node_file(site)
    node = site.slurm.node_name or socket.gethostname()
    # `eray run` starts its processes beside Ray: the cluster may not be ready yet.
    link = open_link(os.path.join(run_dir, SOCKET_NAME), node)
    try:
        link.send({"type": "hello", "world": None, "process_index": None})
        deadline = Deadline.after(site.settings.cluster_timeout_s, now=clock.monotonic())
        ready = await_word(link, "ready", node, deadline, say)
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
        alone = the_only_one([access for access in living(site) if access.job is None and access.stays])
        return None if alone is None else asdict(alone)
    for directory in _directories(site):
        about = files.read_json(os.path.join(directory, NODE_FILE))
        if about is not None:
            return about
    return None


def _directories(site: Site) -> list[str]:
    settings, job = site.settings, site.slurm.job
    if job is None:
        return []
    keys = [naming.cluster_key(job.id, job.step)] if job.step else []
    keys.append(naming.cluster_key(job.id, None))
    return [naming.run_directory(settings.tmpdir, os.getuid(), key, job.restart) for key in keys]
