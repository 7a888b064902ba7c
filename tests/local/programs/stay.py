"""Join the world and stay in it until the file that the first argument names is there."""

import sys
import time
from pathlib import Path

import eray

with eray.connect(jax="--jax" in sys.argv) as conn:
    print(f"process {conn.process_index} is in", flush=True)
    while not Path(sys.argv[1]).exists():
        time.sleep(0.05)
    conn.barrier("end")
    topology = conn.topology()
    print(f"epoch {topology.epoch}: {topology.world('main').phase} on {len(topology.nodes)} node", flush=True)
    conn.barrier("seen")
