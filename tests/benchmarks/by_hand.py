"""One process on its way to a first collective without eray: told all it needs, attached to Ray, JAX started.

by_hand.py RAY_ADDRESS NODES COORDINATOR_ADDRESS PROCESS_COUNT PROCESS_INDEX
"""

import time

UP = time.time()

import sys  # noqa: E402

from stamps import stamp  # noqa: E402


def main(ray_address: str, nodes: str, coordinator_address: str, process_count: str, process_index: str) -> None:
    stamp("python", process_index, UP)
    import jax
    import ray
    from collective import all_gather

    stamp("imported", process_index)
    ray.init(ray_address)
    while process_index == "0" and sum(node["Alive"] for node in ray.nodes()) < int(nodes):
        time.sleep(0.05)
    stamp("attached", process_index)
    jax.distributed.initialize(coordinator_address, int(process_count), int(process_index))
    stamp("connected", process_index)
    all_gather()
    stamp("collective", process_index)


if __name__ == "__main__":
    main(*sys.argv[1:])
