"""Ask several things at once that may hang (a resolver, a home), and go on without those that do."""

import queue
import threading
from collections.abc import Callable, Hashable, Mapping
from typing import TypeVar

from eray._io import clock

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


def answers(calls: Mapping[K, Callable[[], T]], timeout_s: float, at_once: int = 32) -> dict[K, T]:
    """Make the calls, ``at_once`` in threads, and return what those returned that did so in time.

    A thread whose call hangs is left behind; it does not hold this process's end. An exception of a call is raised
    here.
    """
    waiting = list(calls.items())[::-1]  # taken from the end
    done: queue.SimpleQueue[tuple[K, T | None, BaseException | None]] = queue.SimpleQueue()
    for _ in range(min(at_once, len(waiting))):
        threading.Thread(target=_work, args=(waiting, done), daemon=True).start()
    found: dict[K, T] = {}
    deadline = clock.monotonic() + timeout_s
    while len(found) < len(calls):
        try:
            key, value, error = done.get(timeout=max(deadline - clock.monotonic(), 0.0))
        except queue.Empty:
            break
        if error is not None:
            raise error
        found[key] = value  # type: ignore[assignment]
    waiting.clear()
    return found


def _work(
    waiting: list[tuple[K, Callable[[], T]]], done: "queue.SimpleQueue[tuple[K, T | None, BaseException | None]]"
) -> None:
    while True:
        try:
            key, call = waiting.pop()
        except IndexError:
            return
        try:
            done.put((key, call(), None))
        except BaseException as exc:
            done.put((key, None, exc))
