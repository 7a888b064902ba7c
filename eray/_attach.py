"""``attach()``: a driver of the cluster, without a place in any world."""

import os
import socket
import sys
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eray._door import door
from eray._identity import read_site
from eray._own_cluster import attach_own
from eray._settings import Settings
from eray.errors import ClusterLostError

if TYPE_CHECKING:
    from eray._core.topology import Topology
    from eray._ray.notices import Told


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


@door
def attach() -> Cluster:
    """Attach this process to its cluster as a driver.

    That is the Ray of this process or of RAY_ADDRESS where there is one, else the cluster of the ``eray run`` that
    started this process, when it is ready, else that of the Slurm job around it, else the only one of `eray up` on this
    machine. Of `eray run` and `eray up` all nodes are in the topology then; where their Ray still comes up, they are
    awaited for ERAY_CLUSTER_TIMEOUT_S at most; after 10 s stderr says which.

    Raises:
        NodesMissingError: nodes did not come up in time.
        RayAttachError: there is no cluster, or it cannot be reached.
        ClusterLostError: it has no coordinator.
        UsageError: several clusters run on this machine.
    """
    from eray._ray import attach as ray_attach
    from eray._ray import foreign
    from eray._ray.calls import find_coordinator
    from eray._ray.cluster_client import ClusterClient

    environ: MutableMapping[str, str] = os.environ
    if ray_attach.current_address() is not None or environ.get("RAY_ADDRESS"):
        address, _ = foreign.attach(environ.get("RAY_ADDRESS") or None)
    else:
        address = attach_own(read_site(environ), environ)
    handle = find_coordinator()
    if handle is None:
        raise ClusterLostError(socket.gethostname(), "the cluster has no coordinator", "see the log of eray there")
    timeout_s = Settings.from_environ(environ).cluster_timeout_s
    ClusterClient(handle).await_nodes(timeout_s=timeout_s, show=_shower())
    return Cluster(address, handle)


def _shower() -> "Callable[[Told], None]":
    """Return what says on stderr which nodes are awaited, once that takes 10 s."""
    from eray._io import clock
    from eray._ray.notices import make_room
    from eray._show.progress import QUIET_S, Progress

    progress = Progress(terminal=False, silent_until=clock.monotonic() + QUIET_S)

    def show(told: "Told") -> None:
        phase, ready, expected, missing = told
        if text := progress.tell(phase, ready, expected, missing, now=clock.monotonic()):
            make_room()
            print(text, end="", file=sys.stderr, flush=True)

    return show


@door
def coordinator() -> Any:
    """Return the handle of the coordinator, attaching to the cluster where this process is not.

    Raises:
        RayAttachError, ClusterLostError, NodesMissingError: as in ``attach``.
    """
    return attach().coordinator
