"""A process of a world that runs until a file appears, beside a world started again; then a warning and a death."""

import os
import pathlib
import signal
import sys
import time

import ray

import eray

(node,) = eray.attach().topology().nodes
coordinator = eray.coordinator()


def ask(method, *args):
    answer = ray.get(getattr(coordinator, method).remote(*args))
    assert "error" not in answer, answer
    return answer


facts = {"node": node.name, "pid": os.getpid()}
ask("join", {"world": "other", "process_index": 0, "process_count": 2, "join_id": "a", "facts": facts}, 0.0)
ask("died", "other", 1, 0, "a test")
ask("declare_world", {"name": "other", "process_count": 3, "generation": 2})
with eray.connect(world="mine", process_count=1, process_index=0):
    print(f"metrics at {node.address} {node.ports['metrics']}", flush=True)
    while not pathlib.Path(sys.argv[1]).exists():
        time.sleep(0.02)
ask("warn", "a test")
os.kill(ask("ping")["pid"], signal.SIGKILL)
