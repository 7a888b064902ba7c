"""Say who each process of the world is, then prove by an all-gather that they can compute together.

Run it in any of these ways; the program is the same:

    eray run -n 4 -- python examples/hello_jax.py                     # a laptop, or inside an allocation
    srun -N2 --ntasks-per-node=2 python examples/hello_jax.py         # Slurm's tasks are the processes
    python examples/hello_jax.py                                      # a world of one
"""

import eray


def main() -> None:
    with eray.connect() as conn:
        import jax
        import numpy as np
        from jax.sharding import Mesh, NamedSharding
        from jax.sharding import PartitionSpec as P

        devices = ",".join(str(device) for device in jax.local_devices())
        print(
            f"process {conn.process_index} of {conn.process_count} on {conn.node.name}: "
            f"{jax.local_device_count()} of {jax.device_count()} devices ({devices}), Ray node {conn.node.ray_node_id}",
            flush=True,
        )

        # Each device starts with the index of its process; after the all-gather each has those of all devices.
        # (multihost_utils.process_allgather does the same, where all processes have equally many devices.)
        mesh = Mesh(np.array(jax.devices()), ("devices",))
        mine = np.full(jax.local_device_count(), conn.process_index)
        apart = jax.make_array_from_process_local_data(NamedSharding(mesh, P("devices")), mine, (jax.device_count(),))
        together = jax.jit(lambda array: array, out_shardings=NamedSharding(mesh, P()))(apart)
        gathered = np.asarray(together.addressable_data(0)).tolist()

        expected = [device.process_index for device in jax.devices()]
        if gathered != expected or sorted(set(gathered)) != list(range(conn.process_count)):
            raise SystemExit(f"process {conn.process_index}: the all-gather is wrong: {gathered}, not {expected}")
        if conn.process_index == 0:
            print(f"all-gather over {conn.process_count} processes is right: {gathered}", flush=True)


if __name__ == "__main__":
    main()
