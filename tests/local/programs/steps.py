"""A member that steps until it is told to save, saves together with the others, and leaves.

``--jax`` sums over all processes at each step, else each has a pace of its own. ``--own`` has a handler of its own for
SIGUSR1, ``--tell`` one that tells eray. ``--late`` does not step before the notice has come. ``--die`` ends process 1
by it, once. ``--ray`` calls ``ray.init`` itself before it joins.
"""

import itertools
import os
import signal
import sys
import time

import eray


def take_step(step, index):
    if "--jax" not in sys.argv:
        time.sleep(0.002 * (1 + index))
        return
    import jax.numpy
    from jax.experimental import multihost_utils

    assert multihost_utils.process_allgather(jax.numpy.array(step)).tolist() == [step, step]


if "--own" in sys.argv:
    signal.signal(signal.SIGUSR1, lambda number, frame: print("the program's own handler", flush=True))
if "--ray" in sys.argv:
    import ray

    if "RAY_FILES" in os.environ:
        where = {"_temp_dir": os.environ["RAY_FILES"], "num_cpus": 1, "include_dashboard": False}
    else:
        where = {"address": eray.attach().address}
        ray.shutdown()
    ray.init(namespace="eray", log_to_driver=False, **where)
with eray.connect(jax="--jax" in sys.argv) as conn:
    if "--tell" in sys.argv:
        signal.signal(signal.SIGUSR1, lambda number, frame: conn.notify_preemption("the queue's word"))
    print(f"process {conn.process_index} is in", flush=True)
    while "--late" in sys.argv and not conn.preemption_notice():
        time.sleep(0.01)
    for step in itertools.count(3):
        if conn.should_save(step):
            assert conn.preemption_notice()
            conn.barrier("saved", timeout_s=30)
            print(f"saved at {step}", flush=True)
            print(f"because of {conn.topology().preemption.reason}", flush=True)
            break
        if "--die" in sys.argv and conn.preemption_notice() and (conn.process_index, conn.generation) == (1, 1):
            os.kill(os.getpid(), signal.SIGKILL)
        take_step(step, conn.process_index)
    conn.barrier("seen")
