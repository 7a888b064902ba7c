"""The nodes of the Ray cluster with what is free on each."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import ray

from eray._core.gang_layout import Room

if TYPE_CHECKING:
    from eray._ray.client import CoordinatorClient


def read_rooms(client: "CoordinatorClient") -> list[Room]:
    """Return the nodes that live, by node rank. The coordinator takes in those that it does not know yet."""
    living = {str(node["NodeID"]): node for node in _ray_nodes() if node["Alive"]}
    known = {node.ray_node_id: node for node in client.topology().nodes}
    free = _free_by_node()
    rooms = []
    for ray_node_id, node in sorted(living.items(), key=lambda pair: str(pair[1]["NodeName"])):
        if ray_node_id in known:
            about = known[ray_node_id]
            if not about.alive:
                continue  # noticed sooner than by Ray
            rank, name = about.node_rank, about.name
        else:
            fields = {name: node[key] for name, key in _FIELDS.items()} | {"ray_node_id": ray_node_id}
            taken = client.find_node(fields)
            rank, name = int(taken["node_rank"]), str(taken["name"])
        total = node["Resources"]
        left = free.get(ray_node_id, total)
        rooms.append(
            Room(
                node_rank=rank,
                name=name,
                ray_node_id=ray_node_id,
                cpus=total.get("CPU", 0.0),
                gpus=total.get("GPU", 0.0),
                free_cpus=left.get("CPU", 0.0),
                free_gpus=left.get("GPU", 0.0),
            )
        )
    return sorted(rooms, key=lambda room: room.node_rank)


def gpus_here() -> float:
    """Return how many GPUs Ray has on this node."""
    here = ray.get_runtime_context().get_node_id()
    return next((node["Resources"].get("GPU", 0.0) for node in _ray_nodes() if node["NodeID"] == here), 0.0)


_FIELDS = {"name": "NodeName", "address": "NodeManagerAddress", "hostname": "NodeManagerHostname"}


def _free_by_node() -> Mapping[str, Mapping[str, Any]]:
    # Nothing public tells it by node. Without it everything counts as free, and the placement group waits.
    try:
        from ray._private.state import available_resources_per_node
    except ImportError:
        return {}
    ask: Any = available_resources_per_node
    free: Mapping[str, Mapping[str, Any]] = ask()
    return free


def _ray_nodes() -> list[dict[str, Any]]:
    ask: Any = ray.nodes
    return list(ask())
