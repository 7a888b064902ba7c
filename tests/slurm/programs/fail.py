"""Join, and wait; one process (``fail.py INDEX HOW``) fails in one of the ways below instead.

``absent`` never calls connect(), ``killed-joining`` and ``killed`` die by SIGKILL before and after they have joined,
``code`` ends with 7 and ``raise`` by an error that nobody catches.
"""

import os
import signal
import sys
import threading
import time

import eray

WAIT_S = 60.0


def main() -> None:
    who, how = int(sys.argv[1]), sys.argv[2]
    index = int(os.environ.get("ERAY_PROCESS_INDEX") or os.environ.get("SLURM_PROCID") or 0)
    if index != who:
        how = "wait"
    if how == "absent":
        time.sleep(WAIT_S)
    if how == "killed-joining":
        threading.Thread(target=die_when_attached, daemon=True).start()
    with eray.connect() as conn:
        print(f"process {conn.process_index} has joined", flush=True)
        conn.barrier("joined", timeout_s=30)
        if how == "killed":
            die()
        if how == "code":
            print("the last words of the program", flush=True)
            mark()
            sys.exit(7)
        if how == "raise":
            mark()
            raise ValueError("no such layer")
        time.sleep(WAIT_S)


def die_when_attached() -> None:
    """Die in the middle of connect(): attached to Ray, and not yet a member, since others have not come."""
    import ray

    while not ray.is_initialized():
        time.sleep(0.02)
    die()


def die() -> None:
    mark()
    os.kill(os.getpid(), signal.SIGKILL)


def mark() -> None:
    """Print when it happened; all nodes have the same clock."""
    print(f"fails at {time.monotonic()}", flush=True)


if __name__ == "__main__":
    main()
