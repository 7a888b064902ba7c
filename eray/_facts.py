"""What a process says of itself when it joins."""

import os
import secrets
import socket
from collections.abc import Mapping
from typing import Any

from eray._bringup import Site
from eray._identity import Identity
from eray._io.devices import read_hardware


def join_request(site: Site, identity: Identity, node: Mapping[str, Any], place: Mapping[str, int]) -> dict[str, Any]:
    """Return the request with this process's facts; ``place`` is what its supervisor knows better than it does."""
    settings, slurm, hardware = site.settings, site.slurm, read_hardware()
    all_known = bool(slurm.visible) and hardware.uuids and len(slurm.visible or ()) == hardware.count
    facts = {
        "node": node["name"],
        "node_rank": node.get("node_rank"),
        "hostname": socket.gethostname(),
        "local_index": place.get("local_index", identity.local_index),
        "local_count": place.get("local_count", identity.local_count),
        "pid": os.getpid(),
        "visible": slurm.visible,
        "uuids": hardware.uuids if all_known else None,
        "gpus_on_node": slurm.gpus_on_node,
        "hardware_count": hardware.count,
        "in_step": slurm.task is not None,
        "override": settings.devices,
        "expected_devices": settings.devices_per_process,
    }
    return {
        "world": identity.world,
        "generation": identity.generation,
        "process_index": identity.process_index,
        "process_count": identity.process_count,
        "join_id": secrets.token_hex(8),
        "facts": facts,
    }
