"""Calls to the coordinator for threads that wait beside the program, which can be ended from another thread."""

import threading
from collections.abc import Sequence
from typing import Any

from eray._ray.asking import Answer, NoAnswer, closed
from eray._ray.calls import rays_errors, require_ray


class StoppableCall:
    """Carries calls as ``calls.ray_call`` does until ``stop``; then none is made any more, and none is waited for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: set[threading.Event] = set()
        self._stopped = False

    def __call__(self, handle: Any, method: str, args: Sequence[Any], timeout_s: float) -> Answer:
        """Call a method of the actor and return its answer.

        Raises:
            ConnectionStateError: the calls were stopped.
        """
        over = threading.Event()
        with self._lock:
            if self._stopped:
                raise closed()
            require_ray()
            # A future, not ray.get(): that could not be left, and would run on while Ray is shut down.
            future = getattr(handle, method).remote(*args).future()
            self._waiting.add(over)
        future.add_done_callback(lambda _: over.set())
        over.wait(timeout_s)
        with self._lock:
            self._waiting.discard(over)
            if self._stopped:
                raise closed()
        if not future.done():
            raise NoAnswer(f"no answer to {method} within {timeout_s:g} s")
        with rays_errors():
            answer: Answer = future.result()
            return answer

    def stop(self) -> None:
        """End all calls. When it returns no thread calls Ray any more by this."""
        with self._lock:
            self._stopped = True
            for over in self._waiting:
                over.set()
