"""The processes of a world that this node's supervisor starts: output with a prefix, the end noticed at once."""

import asyncio
import contextlib
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO

from eray._io import process

TAIL_LINES = 15
CHUNK = 65_536

Ended = Callable[[int, int, int, str], None]
"""Called with (process_index, pid, return code, last lines)."""


@dataclass
class Child:
    """One process that we started."""

    process_index: int
    process: asyncio.subprocess.Process
    tail: deque[str] = field(default_factory=lambda: deque(maxlen=TAIL_LINES))


class Children:
    """Starts, watches and stops a world's processes on this node."""

    def __init__(self, ended: Ended, started: Callable[[int], None]) -> None:
        """``ended`` is called when one has ended, ``started`` with the pid of each that was started."""
        self._ended, self._started = ended, started
        self._children: dict[int, Child] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def count(self) -> int:
        """How many of them run."""
        return len(self._children)

    async def start(self, process_index: int, argv: Sequence[str], env: Mapping[str, str]) -> None:
        """Start one process in a session of its own, with no input; raises OSError where that is not possible."""
        started = await asyncio.create_subprocess_exec(
            *argv,
            env=dict(env),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        child = Child(process_index, started)
        self._children[process_index] = child
        self._started(started.pid)
        task = asyncio.create_task(self._follow(child))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def stop(self, leave_s: float, grace_s: float) -> None:
        """End them and what they started: SIGTERM after ``leave_s``, SIGKILL ``grace_s`` later."""
        if leave_s and self._tasks:
            await asyncio.wait(tuple(self._tasks), timeout=leave_s)
        families = [each for child in self._children.values() for each in process.descendants(child.process.pid)]
        self._signal(signal.SIGTERM)
        if self._tasks:
            await asyncio.wait(tuple(self._tasks), timeout=grace_s)
        self._signal(signal.SIGKILL)
        for each in families:
            process.kill(each, signal.SIGKILL)
        if self._tasks:
            await asyncio.wait(tuple(self._tasks), timeout=1.0)

    def _signal(self, number: int) -> None:
        for child in self._children.values():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(child.process.pid, number)

    async def _follow(self, child: Child) -> None:
        assert child.process.stdout is not None
        assert child.process.stderr is not None
        prefix = f"[{child.process_index}] ".encode()
        pumps = asyncio.gather(
            _pump(child.process.stdout, sys.stdout.buffer, prefix, child.tail),
            _pump(child.process.stderr, sys.stderr.buffer, prefix, child.tail),
        )
        code = await child.process.wait()
        with contextlib.suppress(
            TimeoutError
        ):  # a grandchild may hold the pipes open: the process has ended all the same
            async with asyncio.timeout(0.5):
                await pumps
        self._children.pop(child.process_index, None)
        self._ended(child.process_index, child.process.pid, code, "\n".join(child.tail))


async def _pump(reader: asyncio.StreamReader, sink: BinaryIO, prefix: bytes, tail: deque[str]) -> None:
    rest = b""
    while True:
        data = await reader.read(CHUNK)
        *lines, rest = (rest + data).split(b"\n")
        if rest and (not data or len(rest) > CHUNK):
            lines.append(rest)
            rest = b""
        if lines:
            tail.extend(line.decode(errors="replace")[:500] for line in lines)
            with contextlib.suppress(
                OSError, ValueError
            ):  # our own output is gone: that is no reason to stop the world
                sink.write(b"".join(prefix + line + b"\n" for line in lines))
                sink.flush()
        if not data:
            return
