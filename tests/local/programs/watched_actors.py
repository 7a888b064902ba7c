"""A driver whose own actors are a world; one is killed, and it is measured who hears of it when."""

import json
import os
import signal
import sys
import time

import ray

import eray


@ray.remote(num_cpus=0.5, max_restarts=0)
class Member:
    def join(self, index):
        self.conn = eray.connect(world="own", process_count=2, process_index=index, jax=False)
        return os.getpid()

    def compute(self):
        time.sleep(60)


def until(found, what):
    started = time.monotonic()
    while not found():
        assert time.monotonic() - started < 20, what
        time.sleep(0.02)
    return time.monotonic() - started


def main(busy):
    cluster = eray.attach()
    members = [Member.remote() for _ in range(2)]
    pids = ray.get([member.join.remote(index) for index, member in enumerate(members)], timeout=60)
    calls = [member.compute.remote() for member in members] if busy == "busy" else []
    time.sleep(1)  # so that the coordinator finds the actors as they stay
    os.kill(pids[1], signal.SIGKILL)
    known_s = until(lambda: cluster.topology().world("own").failure, "the coordinator hears nothing")
    heard_s = until(lambda: not os.path.exists(f"/proc/{pids[0]}"), "the other process hears nothing")
    failure = cluster.topology().world("own").failure
    found = {"known_s": known_s, "heard_s": known_s + heard_s, "failure": failure, "pid": pids[1]}
    print("result:", json.dumps(found), flush=True)
    del calls


main(*sys.argv[1:])
