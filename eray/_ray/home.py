"""The run directory of a node: made private, locked, cleared away at the end."""

import asyncio
import os
import shutil
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from typing import Any

from filelock import FileLock, Timeout

from eray._core import naming, object_store
from eray._core.checkup_limits import check_limits
from eray._core.disk import ROOM
from eray._core.finding import Status
from eray._core.nodespec import BEACON_FILE, NODE_FILE, NodeSpec
from eray._io import clock, files, limits, lives
from eray._io.lock import LOCK_NAME, SPAWN_LOCK, NodeLock
from eray._io.uptime import own_age_s
from eray._ray.notices import say
from eray.errors import DirectoryError, LimitError, NodeLockedError

LOCK_WAIT_S, HEAD_FIRST_S, SILENT_S = 10.0, 2.0, 2.0
"""How long a predecessor may take to end, how much longer other nodes than the head wait, for it says who has them, and
for how long nothing is said of it."""
LEFT_AFTER_S = 5.0
ROOM_S = 5.0
"""How often it is seen whether the disk is full."""
ACCESS = ("gcs_address", "dashboard", "auth", "token_path")
"""What leads to a cluster from one of its nodes."""


def prepare(spec: NodeSpec) -> NodeLock:
    """Make the run directory and Ray's temp directory, take the node's lock, and keep the token there.

    Raises:
        DirectoryError: a directory is not safe, not local, not there, or its disk is full.
        LimitError: the kernel grants too little.
        NodeLockedError: another supervisor serves this cluster on this node.
    """
    _check_place(spec)
    for finding in check_limits(limits.read_limits()):
        if finding.status is Status.ERROR:
            raise LimitError(spec.node, finding.found, str(finding.remedy))
    lock = _locked(spec)
    try:
        files.private_directory(spec.ray_dir, spec.tmpdir)
        if spec.auth == "token":
            files.keep_in_memory(spec.token_path, spec.token)
    except DirectoryError:
        clear(spec)
        raise
    return lock


def _check_place(spec: NodeSpec) -> None:
    """Check that the disk is local and has room, after clearing away what is left on it.

    Raises:
        DirectoryError: it is not, or has not.
    """
    files.check_filesystem(spec.tmpdir)
    sweep(os.path.dirname(spec.run_dir))
    if (short := files.shortages(spec.tmpdir)) is not None:
        raise DirectoryError(spec.tmpdir, f"node {spec.node} has {short}; {ROOM}", files.MAKE_ROOM)


async def watch_room(spec: NodeSpec) -> None:
    """Say it once when the disk gets full: the cluster goes on, but what fails by it does not tell of a disk."""
    while (short := files.shortages(spec.tmpdir)) is None:
        await asyncio.sleep(ROOM_S)
    say(
        f"node {spec.node} has {short}; where that is used up, logs and the coordinator's state are not kept, and Ray "
        "starts no workers: free space there"
    )


def sweep(parent: str) -> None:
    """Remove the run directories of this user's that killed supervisors left on this node.

    Slurm kills what outlives a node's last task (FACTS S15). A directory counts as left when nobody holds a lock in it
    and nothing was made in it for a moment (or the clock was set back since). The locks decide: a clock that jumps
    removes nothing that lives. Ray's temp directory beside it goes with it.
    """
    with suppress(OSError):
        for entry in list(os.scandir(parent)):
            is_old = abs(clock.unix() - entry.stat(follow_symlinks=False).st_mtime) > LEFT_AFTER_S
            if entry.is_dir(follow_symlinks=False) and is_old and _locks(entry.path):
                remove_unless_held(entry.path)


def remove_unless_held(run_dir: str, *, spawning: bool = False) -> None:
    """Remove a run directory, unless somebody serves in it; ``spawning`` tells that the caller starts who would."""
    with suppress(Timeout, OSError), ExitStack() as stack:
        for path in _locks(run_dir):
            if not (spawning and path.endswith(SPAWN_LOCK)):
                stack.enter_context(FileLock(path, timeout=0))
        with suppress(DirectoryError):
            shutil.rmtree(naming.ray_temp_directory(run_dir), ignore_errors=True)
        _remove(run_dir)


def _locks(run_dir: str) -> list[str]:
    paths = [os.path.join(run_dir, name) for name in (LOCK_NAME, SPAWN_LOCK)]
    return [path for path in paths if os.path.exists(path)]


def _locked(spec: NodeSpec) -> NodeLock:
    """Lock the run directory: the one that is there, not one that a predecessor removed while we waited for it."""
    for _ in range(files.RACES):
        files.private_directory(spec.run_dir, spec.tmpdir)
        lock = NodeLock(spec.run_dir)
        with suppress(FileNotFoundError):
            _acquire(lock, spec)
            if os.path.exists(lock.path):
                return lock
            lock.release()
    raise DirectoryError(spec.run_dir, "is removed again and again", "see which other program clears it away")


def _acquire(lock: NodeLock, spec: NodeSpec) -> None:
    try:
        lock.acquire(SILENT_S)
    except NodeLockedError as exc:
        if spec.node_rank == 0:
            say(f"waiting {LOCK_WAIT_S:g} s for a cluster of this job on node {spec.node} to end ({exc.holder})")
        lock.acquire(LOCK_WAIT_S - SILENT_S + (HEAD_FIRST_S if spec.node_rank else 0.0))


def announce(spec: NodeSpec, access: Mapping[str, Any]) -> None:
    """Write how this node's cluster is reached, for what starts on this node later. The cluster can do without."""
    _write_down(spec, NODE_FILE, access)


def announce_beacon(spec: NodeSpec) -> None:
    """Write where the head's beacon listens, for those who look from this node, before there is anything to reach."""
    _write_down(spec, BEACON_FILE, {})


def own_life(spec: NodeSpec) -> dict[str, Any]:
    """Return what tells of this supervisor's life, and where the head's beacon listens, without the token."""
    head = {"at_head": spec.node_rank == 0, "hosts": spec.head_hosts, "ports": spec.ports}
    since = {"began_at": clock.unix() - own_age_s()}
    return {**spec.identity, **head, **lives.own_life(), **since, "token_path": spec.token_path}


def _write_down(spec: NodeSpec, name: str, about: Mapping[str, Any]) -> None:
    try:
        files.write_private_json(os.path.join(spec.run_dir, name), {**own_life(spec), **about})
    except DirectoryError as exc:
        say(f"commands on node {spec.node} will not find this cluster: {exc}")


def object_store_bytes(spec: NodeSpec) -> int:
    """Return the size of Ray's object store: 30 % of the node's memory, as far as /dev/shm has room.

    Raises:
        DirectoryError: /dev/shm has too little room for any.
    """
    shared = files.SHARED_MEMORY
    try:
        free = files.disk(shared).free_bytes
    except OSError as exc:
        raise DirectoryError(shared, f"node {spec.node} has none ({exc.strerror})", "mount a tmpfs there") from exc
    size = object_store.object_store_bytes(free, spec.memory_bytes)
    if size is None:
        raise DirectoryError(
            shared,
            f"node {spec.node} has {free >> 20} MiB free, Ray's object store needs {object_store.MIN_BYTES >> 20}",
            "remove what old jobs left there, or give the container more (--shm-size)",
        )
    return size


def renew(spec: NodeSpec) -> None:
    """Empty Ray's temp directory for a node that takes part anew."""
    shutil.rmtree(spec.ray_dir, ignore_errors=True)
    files.private_directory(spec.ray_dir, spec.tmpdir)


def clear(spec: NodeSpec) -> None:
    """Remove what this node's supervisor made. The lock's file goes with it; a successor makes its own."""
    shutil.rmtree(spec.ray_dir, ignore_errors=True)
    _remove(spec.run_dir)


def _remove(run_dir: str) -> None:
    shutil.rmtree(run_dir, ignore_errors=True)
    with suppress(OSError):  # another cluster of this user's is there
        os.rmdir(os.path.dirname(run_dir))
