"""A driver that runs a function in the processes of a world, and gets back what each returns.

It works with any cluster, and alone:

    python examples/launch.py --processes 2         # a laptop: a Ray of its own, until the driver ends
    eray submit -- python examples/launch.py        # the cluster of `eray up`: one process on each node
    python examples/launch.py                       # in a shell, after the `export` lines of `eray up`
"""

import argparse

import eray


def work(weight: int) -> dict[str, int]:
    """Say who this process is, and add up something over all devices of all processes."""
    conn = eray.connect()  # launch() has joined the world already
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.sharding import Mesh, NamedSharding
    from jax.sharding import PartitionSpec as P

    print(f"process {conn.process_index} of {conn.process_count} on {conn.node.name}", flush=True)
    mesh = Mesh(np.array(jax.devices()), ("devices",))
    mine = np.full(jax.local_device_count(), weight * (conn.process_index + 1))
    everything = jax.make_array_from_process_local_data(NamedSharding(mesh, P("devices")), mine, (jax.device_count(),))
    total = jax.jit(jnp.sum, out_shardings=NamedSharding(mesh, P()))(everything)
    return {"index": conn.process_index, "devices": jax.local_device_count(), "total": int(total.addressable_data(0))}


def main() -> None:
    parser = argparse.ArgumentParser(description="Run a function in the processes of a world.")
    parser.add_argument("--processes", type=int, help="processes in all; by default one on each node")
    parser.add_argument("--devices", type=int, help="devices of each; by default its part of its node's")
    options = parser.parse_args()

    results = eray.launch(work, (1,), processes=options.processes, devices_per_process=options.devices)

    expected = sum(each["devices"] * (each["index"] + 1) for each in results)
    totals = {each["total"] for each in results}
    if totals != {expected}:
        raise SystemExit(f"the sum is wrong: {totals}, not {expected}")
    devices = sum(each["devices"] for each in results)
    print(f"the sum over {len(results)} processes and {devices} devices is right: {expected}", flush=True)


if __name__ == "__main__":
    main()
