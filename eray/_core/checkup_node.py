"""Judge what one node has for eray and Ray: disks, shared memory, the kernel, the clock, other Rays."""

from dataclasses import dataclass

from eray._core import object_store
from eray._core.checkup_limits import Limits, check_limits
from eray._core.disk import ROOM, Disk, shortage
from eray._core.finding import Fault, Finding, error, fault, note, ok, warning
from eray._core.place import Place
from eray._core.sizes import size

GOOD_DISK = 2**30
FULL_SHARE = 0.95
"""Ray puts no objects on a disk that is fuller (its local_fs_capacity_threshold)."""
GOOD_SKEW_S = 1.0


@dataclass(frozen=True)
class Clock:
    """This node's time in words; ``skew_s`` is how far the file server's clock is ahead, None where it has none."""

    shown: str
    skew_s: float | None


@dataclass(frozen=True)
class OtherRay:
    """A daemon of a Ray that is not this user's eray's."""

    pid: int
    owner: str
    program: str


@dataclass(frozen=True)
class Node:
    """What was found on a node. ``temporary`` is the file system of ERAY_TMPDIR; ``pidfd`` as the kernel has it."""

    temporary: Disk | Fault
    run_directory: str | Fault
    shared_free_bytes: int | None
    memory_bytes: int
    limits: Limits
    clock: Clock
    kernel: str
    pidfd: bool
    other_rays: tuple[OtherRay, ...]


def check_node(place: Place, node: Node) -> tuple[Finding, ...]:
    """Judge it all."""
    return (
        _temporary(node.temporary),
        _run_directory(node.run_directory),
        _disk_space(node.temporary),
        _shared_memory(node.shared_free_bytes, node.memory_bytes),
        *check_limits(node.limits),
        _clock(place, node.clock),
        _kernel(node),
        _other_rays(node.other_rays),
    )


def _temporary(disk: Disk | Fault) -> Finding:
    if isinstance(disk, Fault):
        return fault("temporary-directory", disk)
    return ok("temporary-directory", f"{disk.path} on {disk.kind or 'an unknown file system'}")


def _run_directory(path: str | Fault) -> Finding:
    return fault("run-directory", path) if isinstance(path, Fault) else ok("run-directory", path)


def _disk_space(disk: Disk | Fault) -> Finding:
    name = "disk-space"
    if isinstance(disk, Fault):
        return ok(name, "see temporary-directory")
    remedy = f"free space on {disk.path}, or set ERAY_TMPDIR to another local disk"
    if (short := shortage(disk)) is not None:
        return error(name, f"{short}; {ROOM}", remedy)
    if disk.free_bytes < GOOD_DISK:
        return warning(name, f"{disk.free}; logs and objects that Ray spills may fill it", remedy)
    if disk.free_bytes < (1 - FULL_SHARE) * disk.total_bytes:
        return warning(name, f"{disk.free}; Ray spills no objects to a disk that is over {FULL_SHARE:.0%} full", remedy)
    return ok(name, disk.free)


def _shared_memory(free_bytes: int | None, memory_bytes: int) -> Finding:
    name, remedy = "shared-memory", "remove what old jobs left there, or give the container more (--shm-size)"
    if free_bytes is None:
        return error(name, "there is no /dev/shm", "mount a tmpfs there (containers: --ipc=host or --shm-size)")
    found = f"{size(free_bytes)} free in /dev/shm"
    store, wanted = object_store.object_store_bytes(free_bytes, memory_bytes), object_store.wanted_bytes(memory_bytes)
    if store is None:
        return error(name, f"{found}; Ray's object store needs {size(object_store.MIN_BYTES)}", remedy)
    if store < wanted:
        return warning(name, f"{found}: Ray's object store gets {size(store)} instead of {size(wanted)}", remedy)
    return ok(name, f"{found}, {size(store)} for Ray's object store")


def _clock(place: Place, clock: Clock) -> Finding:
    name = "clock"
    if clock.skew_s is not None:
        found = (
            f"{clock.shown}, the file server is {abs(clock.skew_s):.1f} s {'ahead' if clock.skew_s > 0 else 'behind'}"
        )
        if abs(clock.skew_s) < GOOD_SKEW_S:
            return ok(name, f"{clock.shown}, as the file server's to {GOOD_SKEW_S:g} s")
        return warning(name, f"{found}; times in logs do not fit together", "let chrony or ntpd set this node's clock")
    if place.several:
        return note(
            name,
            f"{clock.shown}; whether it is right cannot be told here: no network file system to compare it with",
            "compare this line of all nodes",
        )
    return ok(name, clock.shown)


def _kernel(node: Node) -> Finding:
    if node.pidfd:
        return ok("kernel", f"Linux {node.kernel}")
    return note(
        "kernel",
        f"Linux {node.kernel} has no pidfd here: the end of a daemon is seen a second later",
        "nothing must be done; Linux 5.3 has it, where the container lets it through",
    )


def _other_rays(others: tuple[OtherRay, ...]) -> Finding:
    if not others:
        return ok("other-ray", "no other Ray on this node")
    each = ", ".join(f"{other.program} {other.pid} of {other.owner}" for other in others[:4])
    more = f" and {len(others) - 4} more" if len(others) > 4 else ""
    return note("other-ray", f"another Ray runs here: {each}{more}; neither disturbs the other")
