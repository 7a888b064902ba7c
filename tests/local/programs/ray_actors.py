"""A driver on a Ray that eray did not start: its actors are the processes of a world, twice."""

import ray

import eray


@ray.remote(num_cpus=1, runtime_env={"env_vars": {"JAX_NUM_CPU_DEVICES": "2"}})
class Member:
    def join(self, index):
        with eray.connect(world="w", process_count=2, process_index=index) as conn:
            import jax

            conn.barrier("both")
            world = conn.topology().world("w")
            return {
                "index": [conn.process_index, jax.process_index()],
                "count": [conn.process_count, jax.process_count()],
                "devices": jax.device_count(),
                "generation": [conn.generation, world.generation],
                "node": conn.node.model_dump(mode="json") == conn.topology().node(0).model_dump(mode="json"),
            }


ray.init()  # to RAY_ADDRESS
for _ in range(2):
    members = [Member.remote() for _ in range(2)]
    print(ray.get([member.join.remote(index) for index, member in enumerate(members)], timeout=60), flush=True)
    for member in members:
        ray.kill(member)
topology = ray.get(ray.get_actor("eray-coordinator", namespace="eray").topology.remote(), timeout=30)
print([(world["name"], world["phase"]) for world in topology["worlds"]], flush=True)
