"""Fill the file system of a directory after ``connect()``, wait to be told to go on (a FIFO), and finish as if nothing
had happened; with ``objects`` put one into Ray's store then."""

import os
import sys

import eray

directory, told = sys.argv[1:3]


def fill() -> None:
    descriptor = os.open(f"{directory}/filler", os.O_WRONLY | os.O_CREAT, 0o600)
    for size in (2**20, 1):
        try:
            while True:
                os.write(descriptor, bytes(size))
        except OSError as exc:
            print(exc.strerror, flush=True)
    os.close(descriptor)


with eray.connect(jax=False) as conn:
    if conn.process_index == 0:
        fill()
        with open(told) as stream:
            stream.read()
    conn.barrier("full", timeout_s=20)
    if "objects" in sys.argv:
        import ray

        ray.put(bytes(30 * 2**20))
    conn.barrier("end", timeout_s=20)
    print(len(conn.topology().nodes), "node", flush=True)
