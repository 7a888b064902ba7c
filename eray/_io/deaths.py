"""Find the children of a process, and await the death of processes that are not our own children."""

import asyncio
import contextlib
import os
from collections.abc import Iterable

from eray._io import process
from eray._io.reading import text_of

ASK_S = 1.0


def children(pid: int) -> dict[int, str]:
    """Return pid and name (proc(5): comm) of the children of a process, also of dead ones that it has not reaped."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as stream:
            pids = [int(word) for word in stream.read().split()]
    except OSError:  # it is gone, or the kernel was built without this file
        pids = [each.pid for each in process.descendants(pid)]
    return {each: text_of(f"/proc/{each}/comm").strip() for each in pids}


async def first_gone(pids: Iterable[int], timeout_s: float | None = None) -> int | None:
    """Return the first of ``pids`` that is dead, None where all live after ``timeout_s`` seconds.

    A pidfd tells at once; Linux before 5.3 has none, and is asked every second.
    """
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(timeout_s):
            return await _first_gone(pids)
    return None


async def _first_gone(pids: Iterable[int]) -> int:
    loop = asyncio.get_running_loop()
    gone: asyncio.Future[int] = loop.create_future()

    def tell(pid: int) -> None:
        if not gone.done():
            gone.set_result(pid)

    with contextlib.ExitStack() as stack:
        for pid in pids:
            try:
                descriptor = os.pidfd_open(pid)
            except ProcessLookupError:
                return pid
            except (OSError, AttributeError):
                break
            stack.callback(os.close, descriptor)
            loop.add_reader(descriptor, tell, pid)
            stack.callback(loop.remove_reader, descriptor)
        else:
            return await gone
    while True:
        for pid in pids:
            if not process.is_alive(pid):
                return pid
        await asyncio.sleep(ASK_S)
