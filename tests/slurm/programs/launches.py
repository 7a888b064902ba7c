"""A driver that launches a world; its first generation waits until a node is lost."""

import time

import eray


def work():
    conn = eray.connect()
    if conn.generation == 1:
        conn.barrier("all are here")
        print("waits on", conn.node.name, flush=True)
        time.sleep(90)
    return conn.generation, conn.process_index, conn.process_count, conn.node.name


print("results", eray.launch(work, max_restarts=1), flush=True)
