"""Two actors of a Ray that eray did not start: one tells of a preemption, both save at the same step."""

import itertools
import threading
import time

import ray

import eray


@ray.remote(num_cpus=0)
class Member:
    def run(self, index):
        with eray.connect(world="w", process_count=2, process_index=index, jax=False) as conn:
            for step in itertools.count():
                if index == 1 and step == 20:
                    conn.notify_preemption("the reclaim notice")
                if conn.should_save(step):
                    break
                time.sleep(0.002 * (1 + index))
            conn.barrier("saved", timeout_s=30)
            return step, conn.preemption_notice(), conn.topology().preemption.reason

    def threads(self):
        return sorted(thread.name for thread in threading.enumerate() if thread.name.startswith("eray-"))


ray.init(namespace="eray", log_to_driver=False)
members = [Member.remote() for _ in range(2)]
print(ray.get([member.run.remote(index) for index, member in enumerate(members)], timeout=60))
deadline = time.monotonic() + 5.0
while (left := ray.get([member.threads.remote() for member in members])) != [[], []] and time.monotonic() < deadline:
    time.sleep(0.05)
print("left:", left)
