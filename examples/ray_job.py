"""A driver for Ray Jobs: attach to the cluster, look at it, and let a task run on each of its nodes.

eray up                                     # in a shell, or in a batch script
eray submit -- python examples/ray_job.py   # in another shell; `--job 4711` from the login node
"""

import eray


def main() -> None:
    cluster = eray.attach()  # ray is initialised now
    import ray

    nodes = cluster.topology().nodes
    print(f"nodes of the cluster at {cluster.address}: {len(nodes)}")
    where = ray.remote(num_cpus=0)(lambda: ray.get_runtime_context().get_node_id())
    for node in nodes:
        pinned = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(node.ray_node_id, soft=False)
        ran_on = ray.get(where.options(scheduling_strategy=pinned).remote())
        assert ran_on == node.ray_node_id
        print(f"a task ran on node {node.node_rank}, {node.name}, with {node.cpus} CPUs", flush=True)


if __name__ == "__main__":
    main()
