"""A program of eFormer's users, of which one import is changed; it prints as JSON what each process has after it.

Arguments: the calls in order, ``jax`` and ``ray``, and ``ray:NAMESPACE`` for one with arguments of its own. A last
``leave`` leaves the world before the end and tries to join again.
"""

import json
import socket
import sys

from eray._connect import current_connection
from eray.cluster_util import DistributedConfig, RayClusterConfig, auto_ray_cluster, eSlurmCluster


def main() -> None:
    for call in sys.argv[1:]:
        if call == "leave":
            break
        if call == "jax":
            DistributedConfig().initialize()
        elif call == "ray":
            RayClusterConfig().initialize()
        elif call == "head":
            RayClusterConfig(start_workers=False).initialize()
        else:
            auto_ray_cluster(namespace=call.partition(":")[2], runtime_env={"env_vars": {"ASKED_BY": "old_order"}})

    import jax
    import jax.numpy as jnp
    import ray
    from jax.experimental.multihost_utils import process_allgather

    import eray

    @ray.remote(num_cpus=0)
    def hello() -> str | None:
        import os

        return os.environ.get("ASKED_BY")

    context = ray.get_runtime_context()
    connection = current_connection()
    assert connection is not None
    topology = ray.get(eray.coordinator().topology.remote())
    about = {
        "host": socket.gethostname(),
        "jax": [jax.process_index(), jax.process_count()],
        "gathered": process_allgather(jnp.array([jax.process_index()])).ravel().tolist(),
        "gcs": context.gcs_address,
        "namespace": context.namespace,
        "cpus": sorted(node["Resources"].get("CPU", 0.0) for node in ray.nodes() if node["Alive"]),
        "nodes": [node["name"] for node in topology["nodes"]],
        "task": ray.get(hello.remote()),
        "key": topology["job"]["key"],
        "by_formula": connection.coordinator_address == eSlurmCluster.get_coordinator_address(),
    }
    print(f"old {json.dumps(about)}", flush=True)
    if sys.argv[-1] == "leave":
        connection.close()
        try:
            DistributedConfig().initialize()
        except RuntimeError as error:
            print(f"left: {error}", flush=True)


if __name__ == "__main__":
    main()
