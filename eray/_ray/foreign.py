"""A Ray cluster that eray did not start: attach to it, and give it a coordinator."""

import socket
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from eray._core.access import RAY_ADDRESS
from eray._core.naming import COORDINATOR_NAME, NAMESPACE
from eray._io import clock
from eray._io.signals import kept_sigterm
from eray._ray import attach as own
from eray._ray.calls import find_coordinator
from eray._ray.client import CoordinatorClient
from eray.errors import RayAttachError

if TYPE_CHECKING:
    from eray._core.picture import Picture


def attach(
    address: str | None,
    *,
    namespace: str = NAMESPACE,
    options: Mapping[str, Any] | None = None,
    named: str = RAY_ADDRESS,
) -> tuple[str, dict[str, Any]]:
    """Attach to the Ray at ``address`` (None: the one that this process is attached to) and return it with this node.

    The first process to come creates the coordinator. ``namespace`` and ``options`` are for ``ray.init``, ``named`` is
    what messages call the address.

    Raises:
        RayAttachError: there is no such Ray, or this process is attached to another.
    """
    import ray

    if address is not None:
        host_name = socket.gethostname()
        host, _, port = address.rpartition(":")
        if not host or not port.isdigit():
            raise RayAttachError(host_name, f"{named}{address!r} is no address", "give host:port of that cluster's GCS")
        own.attach(address, node=host_name, named=named, namespace=namespace, options=options)
    elif not ray.is_initialized():
        with kept_sigterm():
            quiet: dict[str, Any] = {"log_to_driver": False}
            ray.init(namespace=namespace, **quiet | dict(options or {}))
    context = ray.get_runtime_context()
    handle = find_coordinator()
    if handle is None:
        from eray._ray.creation import create_coordinator
        from eray._ray.metrics import has_agent

        handle = create_coordinator(
            node_id=None,
            namespace=NAMESPACE,
            name=COORDINATOR_NAME,
            snapshot_path=None,
            job={},
            measured=has_agent(),
        )
    own_address: Any = ray.util.get_node_ip_address
    address = str(own_address())
    fields = {"name": address, "address": address, "hostname": socket.gethostname()}
    node = CoordinatorClient(handle).find_node(fields | {"ray_node_id": context.get_node_id()})
    return str(context.gcs_address), node


def look(node: str, address: str) -> "Picture":
    """Draw the worlds of the Ray at ``address``, by its coordinator.

    Raises:
        RayAttachError: there is no such Ray, or it has no coordinator: nothing of eray's ever ran on it.
        ClusterLostError: the coordinator does not answer.
    """
    import ray

    from eray._core.picture import Picture  # loads pydantic, which a process that only attaches does not need

    own.attach(address, node=node, named=RAY_ADDRESS, log_to_driver=False)
    handle = find_coordinator()
    if handle is None:
        found = f"the Ray at {RAY_ADDRESS}{address} has no coordinator: no process of eray has come to it"
        raise RayAttachError(node, found, "call eray.connect() or eray.attach() in a program on it")
    client = CoordinatorClient(handle)
    topology, tracks = client.topology(), client.notes()
    address = str(ray.get_runtime_context().gcs_address)
    own.detach()
    now = clock.unix()
    nodes = [
        {"node_rank": each.node_rank, "name": each.name, "state": "ready" if each.alive else "lost"}
        for each in topology.nodes
    ]
    return Picture.model_validate(
        {
            "key": address,
            "purpose": "foreign",
            "head": topology.head or address.rpartition(":")[0],
            "taken_at": now,
            "began_at": min((at for world in topology.worlds for _, at in world.timeline), default=now),
            "phase": "up",
            "nodes": nodes,
            "topology": topology,
            "tracks": tracks,
        }
    )
