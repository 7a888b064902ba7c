"""What a node says of itself, to the roll-call and to the coordinator."""

import os
import platform
import socket
from typing import Any

from eray._core.nodespec import NodeSpec
from eray._core.rollcall import NodeReport
from eray._core.version import __version__
from eray._io import software


def node_fields(spec: NodeSpec, address: str, metrics_port: int | None) -> dict[str, Any]:
    """Return this node as the coordinator keeps it, without Ray's id."""
    tokens = spec.visible or tuple(str(each) for each in range(spec.gpus_on_node or spec.hardware_count or 0))
    return {
        "node_rank": spec.node_rank,
        "name": spec.node,
        "hostname": socket.gethostname(),
        "address": address,
        "devices": [{"ordinal": ordinal, "token": token} for ordinal, token in enumerate(tokens)],
        "cpus": spec.cpus,
        "memory_bytes": spec.memory_bytes,
        "ports": {} if metrics_port is None else {"metrics": metrics_port},
    }


def node_report(spec: NodeSpec, address: str) -> NodeReport:
    """Return what this node says at the roll-call; the versions are read without importing what they are of."""
    return NodeReport(
        node_rank=spec.node_rank,
        name=spec.node,
        hostname=socket.gethostname(),
        address=address,
        pid=os.getpid(),
        python=platform.python_version(),  # with its patch level: Ray refuses nodes that differ in it (FACTS R19)
        ray=software.installed("ray") or "none",
        eray=__version__,
        cpus=spec.cpus,
        memory_bytes=spec.memory_bytes or 0,
        devices=spec.visible,
        hardware_count=spec.hardware_count,
    )
