"""Asks the coordinator over the line to this node's supervisor (``relay``), from a process that is no driver of Ray."""

import itertools
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from eray._io.link import Link
from eray._ray.asking import Answer, NoAnswer, Unreachable, closed
from eray._ray.client import CoordinatorClient

if TYPE_CHECKING:
    from eray._core.topology import Topology

_numbers = itertools.count(1)


class _Waiting:
    """One call under way."""

    def __init__(self) -> None:
        self.over = threading.Event()
        self.answer: Mapping[str, Any] | None = None


class RelayedCall:
    """Carries calls as ``asking.Call`` says, until ``stop``. Hand it what the supervisor says (``take``)."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._lock = threading.Lock()
        self._waiting: dict[int, _Waiting] = {}
        self._stopped = False

    def __call__(self, handle: Any, method: str, args: Sequence[Any], timeout_s: float) -> Answer:
        """Ask the supervisor, and return the coordinator's answer.

        Raises:
            ConnectionStateError: the calls were stopped.
            ClusterLostError: the supervisor is gone.
        """
        number, waiting = next(_numbers), _Waiting()
        with self._lock:
            if self._stopped:
                raise closed()
            self._waiting[number] = waiting
        try:
            self._link.send({"type": "ask", "number": number, "method": method, "args": list(args)})
            waiting.over.wait(timeout_s)
        finally:
            with self._lock:
                del self._waiting[number]
                stopped = self._stopped
        if stopped:
            raise closed()
        if waiting.answer is None or waiting.answer.get("no_answer"):
            raise NoAnswer(f"no answer to {method} within {timeout_s:g} s")
        if reason := waiting.answer.get("unreachable"):
            raise Unreachable(reason)
        return waiting.answer

    def take(self, message: Mapping[str, Any]) -> None:
        """Take the supervisor's word ``answer``; one that nobody waits for is dropped."""
        with self._lock:
            if (waiting := self._waiting.get(message["number"])) is not None:
                waiting.answer = message["answer"]
                waiting.over.set()

    def stop(self) -> None:
        """End all calls."""
        with self._lock:
            self._stopped = True
            for waiting in self._waiting.values():
                waiting.over.set()


class RelayedClient(CoordinatorClient):
    """Asks through the supervisor. ``attach`` makes this process a driver, for what is too long for the line."""

    def __init__(self, call: RelayedCall, attach: Callable[[], None]) -> None:
        super().__init__(None, call=call)
        self._attach, self._attaching = attach, threading.Lock()

    def attach(self) -> None:
        """Attach this process to Ray, where it is not; raises RayAttachError."""
        with self._attaching:
            self._attach()

    def topology(self, *, timeout_s: float = 30.0) -> "Topology":
        """Return the cluster as the coordinator sees it now; raises RayAttachError as well."""
        from eray._ray.calls import find_coordinator

        self.attach()
        return CoordinatorClient(find_coordinator()).topology(timeout_s=timeout_s)
