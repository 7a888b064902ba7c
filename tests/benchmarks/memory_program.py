"""A process after its first collective; prints its memory, process 0 that of its node as well (``memory.py``).

``memory_program.py`` with eray; ``memory_program.py ADDRESS INDEX`` knows its place without it.
"""

import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path

from collective import all_gather

PROCESSES = 2


def pss_mib(pid: int) -> float:
    """Return the memory of a process: what it has to itself, and its share of what others have too."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("Pss:"))) / 1024


def words_of(pid: int) -> str:
    """Return the command of a process."""
    return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()


def tell(index: int, others: Iterable[int] = ()) -> None:
    """Print this process's memory, and that of others with their commands."""
    more = [[words_of(pid)[:300], pss_mib(pid)] for pid in others]
    print("memory " + json.dumps({"index": index, "own": pss_mib(os.getpid()), "others": more}), flush=True)


def with_eray() -> None:
    """Take part in the world of ``eray run``."""
    import eray

    with eray.connect() as conn:
        all_gather()
        conn.barrier("all have had their collective")
        if conn.process_index == 0:
            from eray._io.process import descendants

            supervisor = os.getppid()
            others = [each.pid for each in descendants(supervisor)]
            programs = {pid for pid in others if Path(__file__).name in words_of(pid)}
            tell(0, [supervisor, *(pid for pid in others if pid not in programs)])
        else:
            tell(conn.process_index)
        conn.barrier("all have told")


def without_eray(address: str, index: int) -> None:
    """Take part in a world whose places are known."""
    import jax

    jax.distributed.initialize(address, PROCESSES, index)
    all_gather()
    tell(index)


if __name__ == "__main__":
    if len(sys.argv) == 1:
        with_eray()
    else:
        without_eray(sys.argv[1], int(sys.argv[2]))
