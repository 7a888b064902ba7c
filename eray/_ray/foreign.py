"""A Ray cluster that eray did not start: attach to it, and give it a coordinator."""

import socket
from typing import Any

from eray._core.naming import COORDINATOR_NAME, NAMESPACE
from eray._io.signals import kept_sigterm
from eray._ray import attach as own
from eray._ray.asking import find_coordinator
from eray._ray.client import CoordinatorClient
from eray.errors import RayAttachError


def attach(address: str | None) -> tuple[str, dict[str, Any]]:
    """Attach to the Ray at ``address`` (None: the one that this process is attached to) and return it with this node.

    The first process to come creates the coordinator.

    Raises:
        RayAttachError: there is no such Ray, or this process is attached to another.
    """
    import ray

    if address is not None:
        host_name = socket.gethostname()
        host, _, port = address.rpartition(":")
        if not host or not port.isdigit():
            raise RayAttachError(
                host_name, f"RAY_ADDRESS={address!r} is no address", "give host:port of that cluster's GCS"
            )
        own.attach(address, node=host_name, named="RAY_ADDRESS=")
    elif not ray.is_initialized():
        with kept_sigterm():
            ray.init(namespace=NAMESPACE, log_to_driver=False)
    context = ray.get_runtime_context()
    handle = find_coordinator()
    if handle is None:
        from eray._ray.creation import create_coordinator

        handle = create_coordinator(
            node_id=None, namespace=NAMESPACE, name=COORDINATOR_NAME, snapshot_path=None, job={}
        )
    own_address: Any = ray.util.get_node_ip_address
    address = str(own_address())
    fields = {"name": address, "address": address, "hostname": socket.gethostname()}
    node = CoordinatorClient(handle).find_node(fields | {"ray_node_id": context.get_node_id()})
    return str(context.gcs_address), node
