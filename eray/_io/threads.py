"""Await a blocking call that may never come back."""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


async def in_daemon_thread(call: Callable[..., T], *args: Any) -> T:
    """Return what ``call(*args)`` returns, called in a thread of its own.

    ``asyncio.to_thread`` uses threads for which the loop and Python wait at their end, as long as it may take: Ray's
    calls to a cluster that is gone can take for ever.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def deliver(settle: Callable[[Any], None], value: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(lambda: None if future.done() else settle(value))

    def work() -> None:
        try:
            result = call(*args)
        except Exception as exc:
            deliver(future.set_exception, exc)
        else:
            deliver(future.set_result, result)

    threading.Thread(target=work, name=f"eray-{getattr(call, '__name__', 'call')}", daemon=True).start()
    return await future
