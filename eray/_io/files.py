"""Write and check files and directories that belong to this user alone."""

import json
import os
import stat
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

from eray._core.disk import Disk, shortage
from eray.errors import DirectoryError

# No sockets, no reliable flock, or stalls when a server does: nothing that Ray's or eray's run directory can live with.
NETWORK_TYPES = frozenset(
    {"afs", "beegfs", "ceph", "cifs", "coda", "glusterfs", "gpfs", "lustre", "ncpfs", "nfs", "nfs4", "orangefs"}
    | {"panfs", "pvfs2", "smb3", "smbfs", "vboxsf", "wekafs"}
)
_WRITABLE = "set ERAY_TMPDIR or ERAY_STATE_DIR to a directory that you can write to"
MAKE_ROOM = "free space there, or set ERAY_TMPDIR to another local disk"
SHARED_MEMORY = "/dev/shm"
RACES = 20
LOCAL_FUSE = frozenset({"fuse.fuse-overlayfs"})  # the root of a rootless container


def write_private(path: str, data: str | bytes) -> None:
    """Write a file whole, 0600, by a rename: a reader sees the old content or the new, never a part.

    Raises:
        DirectoryError: it cannot be written; the message says why.
    """
    temporary = f"{path}.{os.getpid()}.{os.urandom(4).hex()}"
    try:
        write_new(temporary, data)
        os.rename(temporary, path)
    except OSError as exc:
        remove(temporary)
        raise DirectoryError(path, f"cannot be written ({exc.strerror})", "free space or mend its permissions") from exc


def write_private_json(path: str, data: Mapping[str, Any]) -> None:
    """Write a JSON object as ``write_private`` does."""
    write_private(path, json.dumps(data, indent=1) + "\n")


def read_json(path: str) -> dict[str, Any] | None:
    """Return the JSON object of a file of this user's, None where there is none to read."""
    try:
        with open(path, "rb") as stream:
            if os.fstat(stream.fileno()).st_uid != os.geteuid():
                return None
            found = json.load(stream)
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def write_new(path: str, data: str | bytes) -> None:
    """Write a file that must not be there yet, 0600 whatever the umask, and through to the disk; raises OSError."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as stream:
        os.fchmod(descriptor, 0o600)
        stream.write(data.encode() if isinstance(data, str) else data)
        stream.flush()
        os.fsync(descriptor)


def keep_in_memory(path: str, data: str) -> None:
    """Let ``path`` show ``data`` to this user as long as this process lives, and to nobody afterwards.

    It is a link to a file in this process's memory, so no death of the process, and no loss of power, leaves ``data``
    behind. Only this user's processes can follow it (proc(5), ``/proc/pid/fd``).

    Raises:
        DirectoryError: the link cannot be made.
    """
    descriptor = os.memfd_create(os.path.basename(path))  # closed by our end, whatever it is; not inherited
    os.fchmod(descriptor, 0o400)
    os.write(descriptor, data.encode())
    remove(path)
    try:
        os.symlink(f"/proc/{os.getpid()}/fd/{descriptor}", path)
    except OSError as exc:
        raise DirectoryError(path, f"cannot be made ({exc.strerror})", _WRITABLE) from exc


def remove(path: str) -> None:
    """Remove a file where it is there and can be."""
    with suppress(OSError):
        os.unlink(path)


def private_directory(path: str, base: str) -> str:
    """Make ``path``, each level below ``base`` 0700, or check the levels that are there; return ``path``.

    ``base`` must exist and may be anybody's, but sticky where all may write (``/tmp``). A level that is there must be a
    real directory, no symlink, owned by this user and closed to all others.

    Raises:
        DirectoryError: a level cannot be made, or is not safe; the message names it, its owner and mode.
    """
    path = os.path.abspath(path)
    levels = _levels(path, base)
    for _ in range(RACES):
        with suppress(FileNotFoundError):  # another cluster that ends removes a level that was empty
            _make(levels)
            return path
    found = "cannot be made (No such file or directory), or is removed again and again while it is"
    raise DirectoryError(path, found, "set ERAY_TMPDIR or ERAY_STATE_DIR to a directory that you can write to")


def check_possible(path: str, base: str) -> None:
    """Check that ``private_directory`` would succeed, and make nothing.

    Raises:
        DirectoryError: as there.
    """
    parent = os.path.abspath(base)
    for level in _levels(os.path.abspath(path), base):
        if not os.path.lexists(level):
            if not os.access(parent, os.W_OK | os.X_OK):
                raise DirectoryError(level, "cannot be made (Permission denied)", _WRITABLE)
            return
        check_private(level)
        parent = level


def _levels(path: str, base: str) -> list[str]:
    base = os.path.abspath(base)
    if os.path.commonpath((path, base)) != base or path == base:
        raise DirectoryError(path, f"is not below {base}", "give a directory below it")
    if not os.path.isdir(base):
        raise DirectoryError(
            base, "is no directory", "make it, or set ERAY_TMPDIR or ERAY_STATE_DIR to one that exists"
        )
    mode = stat.S_IMODE(os.stat(base).st_mode)
    if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        remedy = f"`chmod +t {base}`, or set ERAY_TMPDIR or ERAY_STATE_DIR to another place"
        raise DirectoryError(base, f"lets every user rename what is in it (mode {mode:04o}, not sticky)", remedy)
    parts = os.path.relpath(path, base).split(os.sep)
    return [os.path.join(base, *parts[:count]) for count in range(1, len(parts) + 1)]


def _make(levels: Iterable[str]) -> None:
    made: list[str] = []
    for level in levels:
        try:
            os.mkdir(level, 0o700)
            made.append(level)
        except FileExistsError:
            os.lstat(level)
        except FileNotFoundError:
            raise
        except OSError as exc:
            for each in reversed(made):
                with suppress(OSError):  # another process of ours uses it already
                    os.rmdir(each)
            raise DirectoryError(level, f"cannot be made ({exc.strerror})", _WRITABLE) from exc
        check_private(level)


def check_private(path: str) -> None:
    """Check that ``path`` is a real directory of this user's, closed to all others.

    Raises:
        DirectoryError: it is not.
    """
    elsewhere = "remove it, or set ERAY_TMPDIR or ERAY_STATE_DIR to another place"
    try:
        found = os.lstat(path)
    except OSError as exc:
        raise DirectoryError(path, f"cannot be looked at ({exc.strerror})", elsewhere) from exc
    if stat.S_ISLNK(found.st_mode):
        raise DirectoryError(path, f"is a symbolic link (of uid {found.st_uid})", elsewhere)
    if not stat.S_ISDIR(found.st_mode):
        raise DirectoryError(path, "is no directory", elsewhere)
    if found.st_uid != os.geteuid():
        raise DirectoryError(path, f"belongs to uid {found.st_uid}, this is uid {os.geteuid()}", elsewhere)
    if found.st_mode & 0o077:
        mode = f"{stat.S_IMODE(found.st_mode):04o}"
        raise DirectoryError(
            path, f"is open to others (mode {mode}, must be 0700)", f"`chmod 700 {path}`, or {elsewhere}"
        )


def check_filesystem(path: str, type_of: Callable[[str], str | None] | None = None) -> None:
    """Check that ``path``, or what of it exists, is on a disk of this node.

    ``type_of`` names the file system's type as the kernel does, None where unknown (taken as local).

    Raises:
        DirectoryError: it is on a network file system; the message names the type.
    """
    kind = (type_of or filesystem_type)(path)
    if is_network(kind):
        remedy = "set ERAY_TMPDIR to a directory on a local disk of the node (sockets and locks need one)"
        raise DirectoryError(path, f"is on a network file system ({kind})", remedy)


def is_network(kind: str | None) -> bool:
    """Tell whether a file system of this type is on a server, or in a daemon that may stand for one."""
    if kind is None or kind in LOCAL_FUSE:
        return False
    return kind in NETWORK_TYPES or kind == "fuse" or kind.startswith("fuse.")


def filesystem_type(path: str, mountinfo: str = "/proc/self/mountinfo") -> str | None:
    """Return the type of the file system that holds ``path``, as in Linux's mount table; None where there is none."""
    try:
        with open(mountinfo, encoding="utf-8", errors="surrogateescape") as stream:
            lines = stream.readlines()
    except OSError:
        return None
    path, best, kind = os.path.realpath(path), -1, None
    for line in lines:
        before, _, after = line.partition(" - ")
        point = _unescape(before.split(" ")[4])
        if len(point) >= best and (path == point or path.startswith(point.rstrip("/") + "/")):
            best, kind = len(point), after.split(" ")[0]  # of two on one point the later one covers the other
    return kind


def disk(path: str) -> Disk:
    """Return what is left on the file system of ``path``; raises OSError."""
    found = os.statvfs(path)
    inodes = found.f_favail if found.f_files else None  # some file systems have no fixed number
    free, total = found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize
    return Disk(path, filesystem_type(path), free, total, inodes)


def shortages(*paths: str) -> str | None:
    """Return in words which of these file systems have too little room; None where they have, or cannot tell."""
    found = []
    for path in paths:
        with suppress(OSError):
            found.append(shortage(disk(path)))
    return ", ".join(filter(None, found)) or None


def _unescape(text: str) -> str:
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, character)
    return text
