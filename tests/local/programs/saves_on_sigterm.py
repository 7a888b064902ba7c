"""A member that saves its work when it is asked to end."""

import signal
import sys
import time

import eray


def save(number, frame):
    print("saved", flush=True)
    sys.exit(0)


signal.signal(signal.SIGTERM, save)
with eray.connect(jax="--jax" in sys.argv) as conn:
    print(f"process {conn.process_index} is in", flush=True)
    while True:
        time.sleep(0.1)
