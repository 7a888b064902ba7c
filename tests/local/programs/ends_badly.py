"""All processes join and meet; then process 2 ends as the first argument says, while the others wait for it."""

import os
import signal
import sys

import eray
from eray.errors import DevicePlanError

conn = eray.connect(jax="--jax" in sys.argv)
conn.barrier("all are here")
print(f"process {conn.process_index} works", flush=True)
if conn.process_index == 2:
    how = sys.argv[1]
    print("about to end", file=sys.stderr, flush=True)
    if how == "sys.exit":
        sys.exit(7)
    elif how == "SystemExit with words":
        raise SystemExit("no data")
    elif how == "exception":
        raise ValueError("this is wrong")
    elif how == "eray's error":
        raise DevicePlanError("devices-overlap", "n1", "found", "remedy")
    elif how == "in a with block":
        with conn:
            raise SystemExit(7)
    elif how == "os._exit":
        os._exit(9)
    elif how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif how == "abort":
        os.abort()
    elif how == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    elif how == "terminate":
        os.kill(os.getpid(), signal.SIGTERM)
conn.barrier("never passed")
