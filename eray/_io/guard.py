"""A small process that outlives its supervisor by a moment, to end what a killed one leaves behind.

The supervisor writes a line for each process that it starts (``PID STARTED``, a session's leader). When its end of the
pipe closes without ``done``, the guard kills those sessions with all their descendants and removes the directories
that are its arguments, the run directory last. Run as a script with ``python -I -S``: it imports nothing of eray's.
"""

import contextlib
import os
import shutil
import signal
import sys
import time

HOLDER_NAME = "node.pid"  # where the node's lock says who holds it
ROUNDS, PAUSE_S = 100, 0.05


def _rows() -> dict[int, tuple[int, int, int]]:
    """Return pid -> (parent, session, start time) of all living processes."""
    rows = {}
    for name in os.listdir("/proc"):
        with contextlib.suppress(OSError, ValueError):
            if name.isdigit():
                with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as stream:
                    fields = stream.read().rpartition(")")[2].split()
                if fields[0] not in "ZX":
                    rows[int(name)] = int(fields[1]), int(fields[3]), int(fields[19])
    return rows


def family(leaders: dict[int, int], known: dict[int, int]) -> dict[int, int]:
    """Return pid -> start time of what lives of the leaders' sessions, their descendants, and those known before."""
    rows = _rows()
    found = {pid: started for pid, started in known.items() if pid in rows and rows[pid][2] == started}
    for pid, (_, session, started) in rows.items():
        if session in leaders and (pid != session or leaders[session] == started):
            found[pid] = started
    while more := {pid: row[2] for pid, row in rows.items() if row[0] in found and pid not in found}:
        found |= more
    found.pop(os.getpid(), None)
    return found


def main(directories: list[str]) -> None:
    """Wait for the supervisor's end, and clean up after it unless it did so itself."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)
    supervisor = os.getppid()
    leaders: dict[int, int] = {}
    for line in sys.stdin:
        if line.strip() == "done":
            return
        pid, _, started = line.partition(" ")
        leaders[int(pid)] = int(started)
    found: dict[int, int] = {}
    for _ in range(ROUNDS):
        found = family(leaders, found)
        if not found:
            break
        for pid in found:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(PAUSE_S)
    if not _is_held_by(supervisor, directories[-1]):
        return  # a successor has it already
    for directory in directories:
        shutil.rmtree(directory, ignore_errors=True)
        with contextlib.suppress(OSError):  # another cluster of this user's is there
            os.rmdir(os.path.dirname(directory))


def _is_held_by(supervisor: int, directory: str) -> bool:
    try:
        with open(os.path.join(directory, HOLDER_NAME), encoding="ascii") as stream:
            return stream.read(32).partition(" ")[0] == str(supervisor)
    except OSError:
        return False


if __name__ == "__main__":
    main(sys.argv[1:])
