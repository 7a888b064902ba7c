"""The first collective of the benchmarks, the same in all of them: an all-gather of the processes' indexes."""


def all_gather() -> None:
    """Gather each process's index from all devices and check it; raises SystemExit where it is wrong."""
    import jax
    import numpy as np
    from jax.sharding import Mesh, NamedSharding
    from jax.sharding import PartitionSpec as P

    mesh = Mesh(np.array(jax.devices()), ("devices",))
    mine = np.full(jax.local_device_count(), jax.process_index())
    apart = jax.make_array_from_process_local_data(NamedSharding(mesh, P("devices")), mine, (jax.device_count(),))
    together = jax.jit(lambda array: array, out_shardings=NamedSharding(mesh, P()))(apart)
    found = np.asarray(together.addressable_data(0)).tolist()
    if found != [device.process_index for device in jax.devices()]:
        raise SystemExit(f"the all-gather is wrong: {found}")
