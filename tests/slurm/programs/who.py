"""Join, and print as JSON who this process is; process 0 also prints the topology.

With MEET=DIRECTORY:COUNT it stays until COUNT worlds have come as far, so that they are known to run at the same time.
"""

import json
import os
import time
from typing import Any

import eray


def main() -> None:
    with eray.connect() as conn:
        import jax

        about = {
            "process_index": conn.process_index,
            "process_count": conn.process_count,
            "world": conn.world,
            "node": conn.node.name,
            "node_rank": conn.node.node_rank,
            "local_device_ids": conn.local_device_ids,
            "device_rule": conn.device_rule,
            "coordinator_address": conn.coordinator_address,
            "jax": [jax.process_index(), jax.process_count()],
        }
        print(f"who {json.dumps(about)}", flush=True)
        conn.barrier("all have printed", timeout_s=30)
        if conn.process_index == 0:
            print(f"topology {json.dumps(summary(conn.topology()))}", flush=True)
            if "MEET" in os.environ:
                meet(*os.environ["MEET"].split(":"))


def summary(topology: Any) -> dict[str, Any]:
    """Return what the tests look at; srun cuts and mixes lines of more than 1,024 characters."""
    nodes = [(node.name, node.address, [device.token for device in node.devices]) for node in topology.nodes]
    worlds = [
        {
            "coordinator_address": world.coordinator_address,
            "process_count": world.process_count,
            "processes": [(process.node, process.local_index) for process in world.processes],
        }
        for world in topology.worlds
    ]
    return {"key": topology.job["key"] if topology.job else None, "nodes": nodes, "worlds": worlds}


def meet(directory: str, count: str) -> None:
    """Wait until ``count`` worlds are here."""
    with open(os.path.join(directory, f"{os.uname().nodename}-{os.getpid()}"), "x"):
        pass
    deadline = time.monotonic() + 60
    while len(os.listdir(directory)) < int(count):
        if time.monotonic() > deadline:
            raise SystemExit(f"only {os.listdir(directory)} came to {directory}")
        time.sleep(0.05)


if __name__ == "__main__":
    main()
