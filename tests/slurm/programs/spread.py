"""A driver of Ray's: attach, and run a task on each of two nodes, for which Ray waits."""

import eray


def main() -> None:
    eray.attach()
    import ray
    from ray.util.placement_group import placement_group
    from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

    group = placement_group([{"CPU": 0.1}] * 2, strategy="STRICT_SPREAD")
    ray.get(group.ready(), timeout=60)
    where = ray.remote(num_cpus=0.1)(lambda: ray.get_runtime_context().get_node_id())
    placed = [PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=index) for index in range(2)]
    ran_on = set(ray.get([where.options(scheduling_strategy=place).remote() for place in placed]))
    gpus = int(ray.cluster_resources().get("GPU", 0))
    print(f"tasks ran on {len(ran_on)} nodes, Ray has {gpus} GPUs", flush=True)


if __name__ == "__main__":
    main()
