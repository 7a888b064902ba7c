"""Fail in the first generations, in the way that the second argument says: killed, late, code:N, or stale.

``late`` dies after it has run for longer than ERAY_HEALTHY_S.
"""

import os
import signal
import subprocess
import sys
import time

import eray

generations, how = int(sys.argv[1]), sys.argv[2]
with eray.connect() as conn:
    print(f"pid {os.getpid()} generation {conn.generation} port {conn.coordinator_address}", flush=True)
    conn.barrier("all are here")
    if conn.generation <= generations:
        if conn.process_index == 1:
            if how.startswith("code:"):
                sys.exit(int(how[5:]))
            if how == "late":
                time.sleep(float(os.environ["ERAY_HEALTHY_S"]) + 0.5)
            os.kill(os.getpid(), signal.SIGKILL)
        signal.pause()
    if conn.process_index == 0:
        for restart in conn.topology().worlds[0].restarts:
            print(f"restart {restart.generation} {restart.process_index} {restart.code} {restart.cause}", flush=True)
    if how == "stale" and conn.process_index == 1:
        program = "import eray; eray.connect()"
        old = {**os.environ, "ERAY_GENERATION": "1"}
        done = subprocess.run([sys.executable, "-c", program], env=old, capture_output=True, text=True, timeout=60)
        print(f"stale {done.returncode} {done.stderr.strip().splitlines()[-1]}", flush=True)
    conn.barrier("the end")
