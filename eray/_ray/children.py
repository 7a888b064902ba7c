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

from eray._io import guard, process, signals
from eray._ray.notices import make_room

TAIL_LINES = 15
CHUNK = 65_536
DRAIN_S = 0.2

Ended = Callable[[int, int, int, str, bool], None]
"""Called with (process_index, pid, return code, last lines, whether little else was passed on since)."""


@dataclass
class Child:
    """One process that we started."""

    process_index: int
    process: asyncio.subprocess.Process
    stdout: asyncio.StreamReader
    stderr: asyncio.StreamReader
    tail: deque[str] = field(default_factory=lambda: deque(maxlen=TAIL_LINES))
    passed: int = 0  # lines of all processes, when its last one was passed on


class Children:
    """Starts, watches and stops a world's processes on this node."""

    def __init__(self, ended: Ended, started: Callable[[int], None]) -> None:
        """``ended`` is called when one has ended, ``started`` with the pid of each that was started."""
        self._ended, self._started = ended, started
        self._children: dict[int, Child] = {}
        self._leaders: dict[int, int] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._passed = 0

    @property
    def count(self) -> int:
        """How many of them run."""
        return len(self._children)

    async def start(self, process_index: int, argv: Sequence[str], env: Mapping[str, str]) -> int:
        """Start one process in a session of its own, with no input, and return its pid.

        Raises:
            OSError: that is not possible.
        """
        out, err = os.pipe(), os.pipe()
        try:
            # Pipes of our own: asyncio would not tell the end of a process while a grandchild holds its pipes open.
            started = await asyncio.create_subprocess_exec(
                *argv,
                env=dict(env),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=out[1],
                stderr=err[1],
                start_new_session=True,
            )
        except OSError:
            os.close(out[0])
            os.close(err[0])
            raise
        finally:
            os.close(out[1])
            os.close(err[1])
        child = Child(process_index, started, await _reader(out[0]), await _reader(err[0]))
        self._children[process_index] = child
        self._leaders[started.pid] = process.start_time(started.pid) or 0
        self._started(started.pid)
        task = asyncio.create_task(self._follow(child))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return started.pid

    async def stop(self, leave_s: float, grace_s: float) -> None:
        """End them and what they started: SIGTERM after ``leave_s``, SIGKILL ``grace_s`` later.

        What processes that ended before left behind in their sessions is killed as well.
        """
        if leave_s and self._tasks:
            await asyncio.wait(tuple(self._tasks), timeout=leave_s)
        family = guard.family(self._leaders, {})
        self.signal(signal.SIGTERM)
        if self._tasks:
            await asyncio.wait(tuple(self._tasks), timeout=grace_s)
        for pid, started in guard.family(self._leaders, family).items():
            process.kill(process.Identity(pid, started), signal.SIGKILL)
        if self._tasks:
            await asyncio.wait(tuple(self._tasks), timeout=1.0)

    def pass_on(self, number: int) -> None:
        """Send a signal to those of them, and of their process groups, that catch it. It would end the others."""
        groups = {child.process.pid for child in self._children.values()}
        for pid, started in guard.family(self._leaders, {}).items():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if os.getpgid(pid) in groups and signals.catches(pid, number):
                    process.kill(process.Identity(pid, started), number)

    def signal(self, number: int) -> None:
        """Send a signal to each of them and to what stayed in their process groups."""
        for child in self._children.values():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(child.process.pid, number)

    async def _follow(self, child: Child) -> None:
        prefix = f"[{child.process_index}] ".encode()
        pumps = asyncio.gather(
            self._pump(child, child.stdout, sys.stdout.buffer, prefix),
            self._pump(child, child.stderr, sys.stderr.buffer, prefix),
        )
        code = await child.process.wait()
        with contextlib.suppress(TimeoutError):  # a grandchild holds the pipes open: this process has ended
            async with asyncio.timeout(DRAIN_S):
                await asyncio.shield(pumps)
        self._children.pop(child.process_index, None)
        is_last = self._passed - child.passed < TAIL_LINES
        self._ended(child.process_index, child.process.pid, code, "\n".join(child.tail), is_last)

    async def _pump(self, child: Child, reader: asyncio.StreamReader, sink: BinaryIO, prefix: bytes) -> None:
        rest = b""
        while True:
            data = await reader.read(CHUNK)
            *lines, rest = (rest + data).split(b"\n")
            if rest and (not data or len(rest) > CHUNK):
                lines.append(rest)
                rest = b""
            if lines:
                make_room()
                child.tail.extend(line.decode(errors="replace")[:500] for line in lines)
                self._passed = child.passed = self._passed + len(lines)
                with contextlib.suppress(OSError, ValueError):  # our own output is gone: no reason to stop the world
                    sink.write(b"".join(prefix + line + b"\n" for line in lines))
                    sink.flush()
            if not data:
                return


async def _reader(descriptor: int) -> asyncio.StreamReader:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(CHUNK)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(descriptor, "rb", 0))
    return reader
