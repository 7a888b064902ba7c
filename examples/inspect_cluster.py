"""Print what a running cluster of eray looks like. Needs Ray and the coordinator's name only, not eray.

Run it on a node of the cluster, after the `export` lines that `eray up` prints:

    python examples/inspect_cluster.py                                          # on a laptop
    srun --overlap --jobid=4711 -N1 -n1 python examples/inspect_cluster.py      # in a job
"""

import os

import ray


def main() -> None:
    if not os.environ.get("RAY_ADDRESS"):
        raise SystemExit(
            "RAY_ADDRESS is not set: export what `eray up` prints; without it Ray would start a new cluster"
        )
    ray.init(namespace="eray", log_to_driver=False)
    try:
        coordinator = ray.get_actor("eray-coordinator", namespace="eray")
    except ValueError:
        raise SystemExit("no eray-coordinator on this Ray cluster: eray did not start it, or it has ended") from None
    topology = ray.get(coordinator.topology.remote(), timeout=30)

    print(f"job {topology['job']}, head {topology['head']}")
    for node in topology["nodes"]:
        devices = " ".join(f"{device['kind']}:{device['token']}" for device in node["devices"]) or "no accelerators"
        state = "alive" if node["alive"] else "lost"
        print(f"node {node['node_rank']} {node['name']} ({node['address']}, {state}): {node['cpus']} CPUs, {devices}")
    for world in topology["worlds"]:
        where = f", JAX coordinator {world['coordinator_address']}" if world["coordinator_address"] else ""
        print(f"world {world['name']} generation {world['generation']}: {world['phase']}{where}")
        for process in world["processes"]:
            ids = "all" if process["local_device_ids"] is None else process["local_device_ids"]
            print(
                f"  process {process['process_index']} on node {process['node_rank']}, pid {process['pid']}: "
                f"{process['state']}, devices {ids} by rule {process['device_rule']}"
            )
        for restart in world["restarts"]:
            print(f"  started again after generation {restart['generation']}: {restart['cause']}")
        if world["failure"]:
            print(f"  failed: {world['failure']}")


if __name__ == "__main__":
    main()
