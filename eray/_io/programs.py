"""See which programs run on this node, whoever started them."""

import os
from collections.abc import Container, Iterator
from contextlib import suppress
from dataclasses import dataclass


@dataclass(frozen=True)
class Program:
    """A running process; ``name`` is that of its executable."""

    pid: int
    uid: int
    argv: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name of what runs, without its directory."""
        return os.path.basename(self.argv[0])


def running(names: Container[str], proc: str = "/proc") -> Iterator[Program]:
    """Yield the processes whose program has one of these names, as far as this user may see them."""
    try:
        pids = [name for name in os.listdir(proc) if name.isdigit()]
    except OSError:
        return
    for pid in sorted(pids, key=int):
        with suppress(OSError):
            argv = arguments(int(pid), proc)
            if argv and os.path.basename(argv[0]) in names:
                yield Program(int(pid), os.stat(os.path.join(proc, pid)).st_uid, argv)


def arguments(pid: int, proc: str = "/proc") -> tuple[str, ...]:
    """Return the arguments of a process, none where it is gone or a kernel thread."""
    try:
        with open(f"{proc}/{pid}/cmdline", "rb") as stream:
            text = stream.read().decode(errors="replace")
    except OSError:
        return ()
    return tuple(text.split("\0")[:-1])
