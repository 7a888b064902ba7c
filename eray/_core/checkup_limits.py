"""Judge what the kernel grants a process: open files, threads, locked memory, core files."""

from dataclasses import dataclass

from eray._core.finding import Finding, error, note, ok, warning
from eray._core.sizes import size

LEAST_FILES, GOOD_FILES = 64, 8192
"""GCS and the raylet hold 60 open files each with two processes (measured); below 4096 Ray warns, and asks for 8192."""
LEAST_THREADS, GOOD_THREADS = 300, 4096
"""On two cores Ray's daemons hold 160 threads, and each process of a world 50, more with more cores; one process fails
with a limit of 210 and runs with 300 (measured)."""


@dataclass(frozen=True)
class Limits:
    """What this process may have; None is no limit.

    ``open_files`` is what it may raise its limit to. ``threads`` are those that all processes of the user on this
    node may have, ``threads_used`` those that they have; ``group_room`` is what the control group (the container)
    leaves. ``has_infiniband`` tells whether ``locked_bytes`` matters, ``core_path`` where a crash would be written.
    """

    open_files: int | None
    threads: int | None
    threads_used: int
    group_room: int | None
    locked_bytes: int | None
    has_infiniband: bool
    core_bytes: int | None
    core_path: str | None


def check_limits(limits: Limits) -> tuple[Finding, ...]:
    """Judge it all."""
    return _open_files(limits), _threads(limits), _locked_memory(limits), _core_files(limits)


def _open_files(limits: Limits) -> Finding:
    name, found = "open-files", f"ulimit -n may be {_count(limits.open_files)}"
    remedy = (
        f"`ulimit -Hn` must be {GOOD_FILES} or more: limits.conf, or LimitNOFILE of slurmd; Slurm hands a shell's on"
    )
    if limits.open_files is None or limits.open_files >= GOOD_FILES:
        return ok(name, found)
    if limits.open_files < LEAST_FILES:
        return error(name, f"{found}; each of Ray's daemons holds about {LEAST_FILES}", remedy)
    return warning(name, f"{found}; Ray connects every process with every node it talks to", remedy)


def _threads(limits: Limits) -> Finding:
    name = "threads"
    room = {}
    if limits.threads is not None:
        room["ulimit -u"] = limits.threads - limits.threads_used
    if limits.group_room is not None:
        room["the control group"] = limits.group_room
    if not room:
        return ok(name, "no limit")
    what, left = min(room.items(), key=lambda item: item[1])
    found = f"{what} leaves room for {max(left, 0)}"
    remedy = "raise it (limits.conf, TasksMax of slurmd, --pids-limit of the container)"
    if left < LEAST_THREADS:
        return error(name, f"{found}; Ray's daemons and one process of JAX need {LEAST_THREADS}", remedy)
    if left < GOOD_THREADS:
        return warning(name, f"{found}; Ray and JAX start some for each core", remedy)
    return ok(name, found)


def _locked_memory(limits: Limits) -> Finding:
    name = "locked-memory"
    if not limits.has_infiniband:
        return ok(name, "no InfiniBand here that needs it")
    if limits.locked_bytes is None:
        return ok(name, "ulimit -l is unlimited")
    return warning(
        name,
        f"ulimit -l is {size(limits.locked_bytes)}; RDMA, and so NCCL, may fail to register memory",
        "PropagateResourceLimitsExcept=MEMLOCK in slurm.conf, LimitMEMLOCK=infinity for slurmd",
    )


def _core_files(limits: Limits) -> Finding:
    name = "core-files"
    if limits.core_bytes == 0:
        return ok(name, "none are written")
    where = limits.core_path or "core"
    if where.startswith("|"):
        return ok(name, f"a crash goes to {where[1:].split(' ')[0]}")
    most = "its whole memory" if limits.core_bytes is None else size(limits.core_bytes)
    return note(
        name, f"a process that crashes writes {most} to {where!r}", "`ulimit -c 0` before srun, unless you want that"
    )


def _count(limit: int | None) -> str:
    return "unlimited" if limit is None else str(limit)
