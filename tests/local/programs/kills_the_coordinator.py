"""Kill the coordinator while JAX starts, at work, and while one of the two processes leaves."""

import functools
import os
import signal
import sys
import time
from pathlib import Path

import jax
import ray

import eray

initialize = jax.distributed.initialize


def kill_coordinator() -> None:
    os.kill(ray.get(eray.coordinator().ping.remote())["pid"], signal.SIGKILL)


@functools.wraps(initialize)  # eray passes what the signature names
def initialize_without_coordinator(*args, **kwargs):
    kill_coordinator()
    return initialize(*args, **kwargs)


index = int(os.environ["ERAY_PROCESS_INDEX"])
print(f"process {index} is up", flush=True)
while not Path(sys.argv[1], f"start-{index}").exists():
    time.sleep(0.02)
if index == 1:
    jax.distributed.initialize = initialize_without_coordinator
conn = eray.connect()
conn.barrier("before")
if index == 0:
    kill_coordinator()
conn.barrier("after")
assert jax.process_count() == 2
if index == 1:
    while conn.topology().world(conn.world).phase != "draining":
        time.sleep(0.02)
    kill_coordinator()
    topology = conn.topology()
    print(f"epoch {topology.epoch}, generation {topology.world(conn.world).generation}", flush=True)
conn.close()
