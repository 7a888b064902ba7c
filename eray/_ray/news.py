"""What the head's supervisor noticed, told to the coordinator in order: it keeps the record, nobody waits."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from eray._io.threads import in_daemon_thread
from eray.errors import ErayError


class News:
    """A queue of calls to the coordinator, made one after the other once it answers."""

    def __init__(self, has_coordinator: asyncio.Event) -> None:
        self._has_coordinator = has_coordinator
        self._queue: asyncio.Queue[tuple[Callable[..., None], tuple[Any, ...]]] = asyncio.Queue()

    def tell(self, call: Callable[..., None], *args: Any) -> None:
        """Have ``call(*args)`` made in a thread; what the coordinator refuses is no news to it."""
        self._queue.put_nowait((call, args))

    async def post(self) -> None:
        """Make the calls, for ever."""
        await self._has_coordinator.wait()
        while True:
            call, args = await self._queue.get()
            try:
                with suppress(ErayError):
                    await in_daemon_thread(call, *args)
            finally:
                self._queue.task_done()

    async def posted(self) -> None:
        """Return when the coordinator has heard all so far; at once where there is none yet."""
        if self._has_coordinator.is_set():
            await self._queue.join()
