"""CPU seconds of all processes that a run starts, daemons and the dead included: a cgroup of the kernel's counts them.

The harness puts the command into the cgroup before it starts, so that all it starts is in it too; the processes of the
rig's nodes are put there once, so that what their slurmd starts is. Nothing can leave it by forking or `setsid`, and
the kernel keeps the time of the dead: sums over /proc would miss what was reaped by an init that is not its parent.
"""

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

V1 = Path("/sys/fs/cgroup/cpuacct")
V2 = Path("/sys/fs/cgroup")


class CpuMeter:
    """One cgroup. Where none can be made (no root, no cgroups) ``read`` returns None."""

    def __init__(self) -> None:
        self._parent = V1 if V1.is_dir() else V2
        self._group: Path | None = self._parent / f"eray-benchmark-{os.getpid()}"
        try:
            self._group.mkdir()
        except OSError:
            self._group = None

    def adopt(self, pids: Iterable[int]) -> None:
        """Count these processes, and what they start from now on."""
        if self._group is not None:
            _move(pids, self._group)

    def read(self) -> float | None:
        """Return the CPU seconds so far, user and system."""
        if self._group is None:
            return None
        if self._parent == V1:
            return int((self._group / "cpuacct.usage").read_text()) / 1e9
        fields = dict(line.split() for line in (self._group / "cpu.stat").read_text().splitlines())
        return int(fields["usage_usec"]) / 1e6

    def pids(self) -> frozenset[int]:
        """Return the processes that live in it."""
        if self._group is None:
            return frozenset()
        return frozenset(map(int, (self._group / "cgroup.procs").read_text().split()))

    def close(self) -> None:
        """Give the processes back and remove the cgroup."""
        if self._group is None:
            return
        _move(self.pids(), self._parent)
        with contextlib.suppress(OSError):
            self._group.rmdir()
        self._group = None


def _move(pids: Iterable[int], group: Path) -> None:
    for pid in pids:
        with contextlib.suppress(OSError):  # it is dead
            (group / "cgroup.procs").write_text(str(pid))
