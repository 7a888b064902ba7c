"""Step until told to save, save together, and leave. ``--own`` has a handler of its own, which tells eray."""

import itertools
import signal
import sys
import time

import eray


def main() -> None:
    with eray.connect(jax=False) as conn:
        if "--own" in sys.argv:
            signal.signal(signal.SIGUSR1, lambda number, frame: conn.notify_preemption("the program's handler"))
        print(f"process {conn.process_index} has joined", flush=True)
        for step in itertools.count():
            if conn.should_save(step):
                break
            time.sleep(0.01 + 0.001 * conn.process_index)  # after a minute it is still only some seconds behind
        conn.barrier("saved", timeout_s=30)
        notice = conn.topology().preemption
        print(f"process {conn.process_index} saved at {step}: {notice.reason if notice else None}", flush=True)


if __name__ == "__main__":
    main()
