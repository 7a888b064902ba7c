"""Use memory until the kernel ends process 1."""

import eray

with eray.connect(jax=False) as conn:
    conn.barrier("all are here")
    held = []
    while conn.process_index == 1:
        held.append(bytearray(b"x") * 2**26)
    conn.barrier("never", timeout_s=60)
