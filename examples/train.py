"""Train a small network data-parallel over all devices of all processes, and check that it really was.

    eray run -n 2 -- python examples/train.py
    srun -N2 --ntasks-per-node=2 python examples/train.py

Each process makes its own part of the data. The gradient is of the mean loss over the whole batch, so XLA sums it over
all processes; the parameters are replicated and must stay equal everywhere.
"""

import eray

STEPS, RATE, ROWS_PER_DEVICE, FEATURES, HIDDEN = 60, 0.2, 64, 8, 32


def main() -> None:
    with eray.connect() as conn:
        import jax
        import jax.numpy as jnp
        import numpy as np
        from jax.sharding import Mesh, NamedSharding
        from jax.sharding import PartitionSpec as P

        mesh = Mesh(np.array(jax.devices()), ("data",))
        everywhere, by_row = NamedSharding(mesh, P()), NamedSharding(mesh, P("data"))

        def predict(params, x):
            return jnp.tanh(x @ params["w1"] + params["b1"]) @ params["w2"] + params["b2"]

        def loss_of(params, x, y):
            return jnp.mean((predict(params, x) - y) ** 2)

        @jax.jit
        def step(params, x, y):
            loss, gradient = jax.value_and_grad(loss_of)(params, x, y)
            return jax.tree.map(lambda p, g: p - RATE * g, params, gradient), loss, gradient

        rng = np.random.default_rng(0)  # the same in all processes
        start = {
            "w1": rng.normal(0, FEATURES**-0.5, (FEATURES, HIDDEN)),
            "b1": np.zeros(HIDDEN),
            "w2": rng.normal(0, HIDDEN**-0.5, (HIDDEN, 1)),
            "b2": np.zeros(1),
        }
        start = jax.tree.map(np.float32, start)
        params = jax.tree.map(lambda leaf: jax.make_array_from_process_local_data(everywhere, leaf, leaf.shape), start)
        truth = rng.normal(size=(FEATURES, 1)).astype(np.float32)

        def over_all(part):
            """Put this process's rows beside those of the others: one array over all devices."""
            shape = (len(part) // jax.local_device_count() * jax.device_count(), *part.shape[1:])
            return jax.make_array_from_process_local_data(by_row, part, shape)

        rows = ROWS_PER_DEVICE * jax.local_device_count()
        my_x = np.random.default_rng(1 + conn.process_index).normal(size=(rows, FEATURES)).astype(np.float32)
        my_y = np.sin(my_x @ truth)
        x, y = over_all(my_x), over_all(my_y)

        def from_all(vector):
            """Return one row per device with what its process gave."""
            copies = over_all(np.broadcast_to(vector, (jax.local_device_count(), *vector.shape)))
            return local(jax.jit(lambda array: array, out_shardings=everywhere)(copies))

        # What all processes find together is the mean of what each finds alone, by its devices: none is left out.
        together = flat(step(params, x, y)[2])
        alone = from_all(flat(jax.jit(jax.grad(loss_of))(start, my_x, my_y)))
        check(conn, np.allclose(together, alone.mean(0), rtol=1e-3, atol=1e-5), "the gradient is not that of all data")

        losses = []
        for number in range(STEPS):
            params, loss, _ = step(params, x, y)
            losses.append(float(loss))
            if conn.process_index == 0 and number % 10 == 0:
                print(f"step {number:3d}: loss {losses[-1]:.4f}", flush=True)
        check(conn, losses[-1] < 0.5 * losses[0], f"the loss did not fall: {losses[0]:.4f} to {losses[-1]:.4f}")

        copies = from_all(flat(params))
        check(conn, (copies == copies[0]).all(), "the parameters differ between processes")
        if conn.process_index == 0:
            print(
                f"loss {losses[0]:.4f} to {losses[-1]:.4f} on {len(x)} rows, {conn.process_count} processes and "
                f"{jax.device_count()} devices; {copies.shape[1]} parameters equal everywhere",
                flush=True,
            )


def local(array):
    """Return the value of a replicated array."""
    import numpy as np

    return np.asarray(array.addressable_data(0))


def flat(tree):
    """Return all numbers of a replicated tree as one vector."""
    import jax
    import numpy as np

    return np.concatenate([local(leaf).ravel() for leaf in jax.tree.leaves(tree)])


def check(conn, right: bool, fault: str) -> None:
    """End the process with the fault unless all is right."""
    if not right:
        raise SystemExit(f"process {conn.process_index}: {fault}")


if __name__ == "__main__":
    main()
