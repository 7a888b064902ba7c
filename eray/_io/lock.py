"""Hold a node's run directory for one supervisor at a time."""

import os
from types import TracebackType

from filelock import FileLock, Timeout

from eray._io import files, process
from eray._io.guard import HOLDER_NAME
from eray.errors import DirectoryError, NodeLockedError

LOCK_NAME, SPAWN_LOCK = "node.lock", "spawn.lock"


class NodeLock:
    """The lock of the run directory ``directory``; the kernel frees it when its process ends, however that ends.

    Who holds it stands in a file beside the lock: an attempt to take a lock may truncate the lock's own file.
    """

    def __init__(self, directory: str) -> None:
        self.path = os.path.join(directory, LOCK_NAME)
        self._holder_path = os.path.join(directory, HOLDER_NAME)
        self._lock = FileLock(self.path, mode=0o600, thread_local=False)

    def acquire(self, wait_s: float = 0.0) -> None:
        """Take the lock, and say in the directory who holds it.

        Raises:
            NodeLockedError: another process, which it names, still holds it after ``wait_s``.
            DirectoryError: the run directory is not there, not safe, or not writable.
            FileNotFoundError: the holder removed the run directory when it ended; make it anew and come again.
        """
        files.check_private(os.path.dirname(self.path))  # filelock would make a directory that is not there
        try:
            self._lock.acquire(timeout=wait_s)
        except Timeout:
            raise NodeLockedError(self.path, self._holder_words()) from None
        except FileNotFoundError:
            raise
        except OSError as exc:
            remedy = "set ERAY_TMPDIR to a directory of yours on a local disk with free space"
            raise DirectoryError(self.path, f"cannot be locked ({exc.strerror or exc})", remedy) from exc
        pid = os.getpid()
        try:
            files.write_private(self._holder_path, f"{pid} {process.start_time(pid) or 0}\n")
        except DirectoryError:
            self._lock.release(force=True)
            raise

    def release(self) -> None:
        """Free the lock where this process holds it."""
        if self._lock.is_locked:
            files.remove(self._holder_path)
            self._lock.release(force=True)

    def holder(self) -> int | None:
        """Return the pid that the holder left here, whether it lives or not; None where nobody did."""
        pid, _, _ = self._read_holder().partition(" ")
        return int(pid) if pid.isdigit() else None

    def __enter__(self) -> "NodeLock":
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def _holder_words(self) -> str:
        pid, _, started = self._read_holder().strip().partition(" ")
        if not (pid.isdigit() and started.isdigit()):
            return "another process that is just starting"
        if not process.is_alive(int(pid), int(started) or None):
            return f"a process that cannot be seen from here (the last one wrote pid {pid}; another PID namespace?)"
        return f"process {pid} on this node"

    def _read_holder(self) -> str:
        try:
            with open(self._holder_path, encoding="ascii", errors="replace") as stream:
                return stream.read(64)
        except OSError:
            return ""
