"""How much room a file system must have for eray and Ray."""

from dataclasses import dataclass

from eray._core.sizes import size

LEAST_BYTES, LEAST_INODES = 64 * 2**20, 1000
"""For sockets, logs and state. Ray cannot start, or ends, where a file cannot be made."""
ROOM = f"sockets, logs and state need {size(LEAST_BYTES)} and {LEAST_INODES} files"


@dataclass(frozen=True)
class Disk:
    """A file system: its type, None where unknown, and what is left on it for this user."""

    path: str
    kind: str | None
    free_bytes: int
    total_bytes: int
    free_inodes: int | None

    @property
    def free(self) -> str:
        """How much is free, in words."""
        return f"{size(self.free_bytes)} of {size(self.total_bytes)} free in {self.path}"


def shortage(disk: Disk) -> str | None:
    """Return in words what is left where that is too little, else None; some file systems count nothing at all."""
    if disk.free_inodes is not None and disk.free_inodes < LEAST_INODES:
        return f"room for {disk.free_inodes} more files in {disk.path}"
    return disk.free if disk.total_bytes and disk.free_bytes < LEAST_BYTES else None
