"""Read what the kernel grants this process: open files, threads, locked memory, core files, pidfds."""

import os
import resource
from collections.abc import Iterator
from contextlib import suppress

from eray._core.checkup_limits import Limits
from eray._io.reading import names_in, text_of

INFINIBAND = "/sys/class/infiniband"
UNLIMITED = resource.RLIM_INFINITY
NO_LIMIT = 2**60


def read_limits() -> Limits:
    """Return what this process may have."""
    return Limits(
        open_files=hard_limit(resource.RLIMIT_NOFILE),
        threads=thread_limit(),
        threads_used=threads_of_user(),
        group_room=group_room(),
        locked_bytes=soft_limit(resource.RLIMIT_MEMLOCK),
        has_infiniband=os.path.isdir(INFINIBAND),
        core_bytes=soft_limit(resource.RLIMIT_CORE),
        core_path=core_pattern(),
    )


def hard_limit(kind: int) -> int | None:
    """Return what the limit may be raised to (``resource.RLIMIT_…``), None where there is none."""
    hard = resource.getrlimit(kind)[1]
    return None if hard == UNLIMITED else hard


def soft_limit(kind: int) -> int | None:
    """Return the limit as it is, None where there is none."""
    soft = resource.getrlimit(kind)[0]
    return None if soft == UNLIMITED else soft


def thread_limit() -> int | None:
    """Return how many threads all processes of this user may have, None without a limit; root has none."""
    return None if os.geteuid() == 0 else soft_limit(resource.RLIMIT_NPROC)


def threads_of_user(proc: str = "/proc") -> int:
    """Return how many threads the processes of this user have on this node."""
    own, count = os.geteuid(), 0
    for name in names_in(proc):
        if name.isdigit():
            with suppress(OSError, ValueError, IndexError):
                if os.stat(f"{proc}/{name}").st_uid == own:
                    count += int(text_of(f"{proc}/{name}/stat").rpartition(")")[2].split()[17])  # proc(5): num_threads
    return count


def group_room(proc: str = "/proc", root: str = "/sys/fs/cgroup") -> int | None:
    """Return how many more threads this process's control group may have, and those above it; None without a limit."""
    room = []
    for group in _groups("pids", proc, root):
        most, now = text_of(f"{group}/pids.max").strip(), text_of(f"{group}/pids.current").strip()
        if most.isdigit() and now.isdigit():
            room.append(int(most) - int(now))
    return min(room, default=None)


def group_memory(proc: str = "/proc", root: str = "/sys/fs/cgroup") -> int | None:
    """Return the bytes of memory that this process's control group may use, and those above it; None without a limit.

    Version 1 of control groups shows no limit as a number near 2**63.
    """
    names = ("memory.max", "memory.limit_in_bytes")
    found = [text_of(f"{group}/{name}").strip() for group in _groups("memory", proc, root) for name in names]
    return min((int(text) for text in found if text.isdigit() and int(text) < NO_LIMIT), default=None)


def memory_kills(proc: str = "/proc", root: str = "/sys/fs/cgroup") -> int:
    """Return how many processes the kernel has killed in this process's control group because memory ran out."""
    # "oom_kill 3" is a line of memory.events in version 2 of control groups, of memory.oom_control in version 1.
    names = ("memory.events", "memory.oom_control")
    for group in _groups("memory", proc, root):
        rows = (row.split() for name in names for row in text_of(f"{group}/{name}").splitlines())
        found = [int(row[1]) for row in rows if len(row) == 2 and row[0] == "oom_kill"]
        if found:
            return found[0]
    return 0


def memory_words(proc: str = "/proc", root: str = "/sys/fs/cgroup") -> str:
    """Return how a process ended that the kernel killed for memory, as words after its name.

    Whose limit it was tells the control group's name: those that Slurm makes have its own in it.
    """
    most = group_memory(proc, root)
    limit = "" if most is None else f" (at most {most / 2**30:.1f} GiB)"
    is_slurms = "slurm" in text_of(f"{proc}/self/cgroup")
    remedy = "ask for more (--mem)" if is_slurms else "raise the limit of its container or session, or let it use less"
    return f"was killed by the kernel (SIGKILL, 137): its control group ran out of memory{limit}; {remedy}"


def core_pattern() -> str | None:
    """Return where Linux writes the memory of a process that crashes, None where it does not say."""
    return text_of("/proc/sys/kernel/core_pattern").strip() or None


def has_pidfd() -> bool:
    """Tell whether a process can be watched by a descriptor: Linux 5.3 can, where the container lets it."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (OSError, AttributeError):
        return False
    return True


def _groups(controller: str, proc: str, root: str) -> Iterator[str]:
    """Yield the directories of this process's control group and of those above it."""
    # "0::/a/b" with the one hierarchy of version 2, "7:pids:/a/b" with version 1, see cgroups(7)
    lines = (line.split(":", 2) for line in text_of(f"{proc}/self/cgroup").splitlines())
    paths = {controllers: path for _, controllers, path in lines}
    path = paths.get(controller, paths.get(""))
    base = f"{root}/{controller}" if os.path.isdir(f"{root}/{controller}") else root
    while path is not None:
        yield f"{base}{path}"
        path = None if path in ("", "/") else path.rpartition("/")[0]
