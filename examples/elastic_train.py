"""Train with checkpoints, lose a process or a node on purpose, and go on from the last checkpoint with what is left.

    eray run -n 3 --max-restarts 2 -- python examples/elastic_train.py --directory /tmp/elastic --lose-at 25
    eray run --max-restarts 2 --min-nodes 2 -- python examples/elastic_train.py --directory $SCRATCH/elastic

Each life of the world (``conn.generation``) is made of new operating system processes. They restore what the last one
saved, which may have been laid out over more devices. The batch is the same on any number of devices, so the loss
goes on where it was. Needs ``pip install orbax-checkpoint``; the directory must be one that all nodes see.
"""

import argparse
import os
import signal
import time

import eray

RATE, ROWS, FEATURES, HIDDEN = 0.2, 384, 8, 32


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--directory", required=True, help="where checkpoints are kept, on all nodes the same")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--save-every", type=int, default=5, help="steps between checkpoints")
    parser.add_argument("--lose-at", type=int, help="the step of the first generation in which the last node dies")
    parser.add_argument("--seconds-per-step", type=float, default=0.0, help="pretend that a step takes this long")
    options = parser.parse_args()
    with eray.connect() as conn:
        train(conn, options)


def train(conn: eray.Connection, options: argparse.Namespace) -> None:
    import jax
    import jax.numpy as jnp
    import numpy as np
    import orbax.checkpoint as ocp
    from jax.sharding import Mesh, NamedSharding
    from jax.sharding import PartitionSpec as P

    mesh = Mesh(np.array(jax.devices()), ("data",))
    everywhere, by_row = NamedSharding(mesh, P()), NamedSharding(mesh, P("data"))

    def loss_of(params, x, y):
        predicted = jnp.tanh(x @ params["w1"] + params["b1"]) @ params["w2"] + params["b2"]
        return jnp.mean((predicted - y) ** 2)

    @jax.jit
    def update(params, x, y):
        loss, gradient = jax.value_and_grad(loss_of)(params, x, y)
        return jax.tree.map(lambda p, g: p - RATE * g, params, gradient), loss

    rng = np.random.default_rng(0)  # the same in all processes and generations
    start = {
        "w1": rng.normal(0, FEATURES**-0.5, (FEATURES, HIDDEN)),
        "b1": np.zeros(HIDDEN),
        "w2": rng.normal(0, HIDDEN**-0.5, (HIDDEN, 1)),
        "b2": np.zeros(1),
    }
    start = jax.tree.map(np.float32, start)
    inputs = rng.normal(size=(ROWS, FEATURES)).astype(np.float32)
    targets = np.sin(inputs @ rng.normal(size=(FEATURES, 1)).astype(np.float32))

    def spread(array, sharding):
        return jax.make_array_from_callback(array.shape, sharding, lambda index: array[index])

    x, y = spread(inputs, by_row), spread(targets, by_row)
    params = jax.tree.map(lambda leaf: spread(leaf, everywhere), start)

    keep = ocp.CheckpointManagerOptions(max_to_keep=2, save_interval_steps=options.save_every)
    with ocp.CheckpointManager(os.path.abspath(options.directory), options=keep) as checkpoints:
        step = checkpoints.latest_step() or 0
        if step:
            params = checkpoints.restore(step, args=ocp.args.StandardRestore(params))
        if conn.process_index == 0:
            print(f"generation {conn.generation} starts at step {step} with {conn.process_count} processes", flush=True)
        while step < options.steps:
            params, loss = update(params, x, y)
            loss, step = float(loss), step + 1
            time.sleep(options.seconds_per_step)
            if conn.process_index == 0:
                print(f"step {step} loss {loss:.5f}", flush=True)
            is_last = conn.should_save(step)  # Slurm has warned: the same step in all processes
            checkpoints.save(step, args=ocp.args.StandardSave(params), force=is_last)
            if is_last:
                checkpoints.wait_until_finished()
                print(f"process {conn.process_index} saved step {step} before the job ends", flush=True)
                return
            if conn.generation == 1 and step == options.lose_at:
                checkpoints.wait_until_finished()
                lose_the_last(conn)
        if conn.process_index == 0:
            print(f"done: step {step}, loss {loss:.5f}, generation {conn.generation}", flush=True)


def lose_the_last(conn: eray.Connection) -> None:
    """Kill the last process; on several nodes its supervisor with it, which is as if the node lost its power."""
    if conn.process_index == conn.process_count - 1:
        victim = os.getppid() if conn.node.node_rank else os.getpid()
        os.kill(victim, signal.SIGKILL)


if __name__ == "__main__":
    main()
