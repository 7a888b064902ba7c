"""A process's line to its node's supervisor: a unix socket in the run directory, one JSON object a line.

The supervisor sees the end of it when this process dies, whatever the way.
"""

import json
import os
import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from eray._io import clock
from eray.errors import ClusterLostError

MAX_LINE = 1 << 20
PARTING_S = 2.0
CLEARED_S = 8.0
"""How long a process that leaves waits for its supervisor to stop Ray and clear the run directory."""


class Link:
    """The open line. One thread may receive; any may send."""

    def __init__(self, connected: socket.socket, node: str) -> None:
        self._socket, self._node = connected, node
        self._buffer = b""
        self._sending = threading.Lock()
        self._closed = False
        self._watcher: threading.Thread | None = None
        self._leaving, self._parted, self._gone = threading.Lock(), threading.Event(), threading.Event()
        self._awaits_end = False

    @classmethod
    def open(cls, path: str, node: str) -> "Link":
        """Connect to the supervisor's socket; raises OSError where nobody listens."""
        connected = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connected.connect(path)
        except OSError:
            connected.close()
            raise
        return cls(connected, node)

    def send(self, message: Mapping[str, Any]) -> None:
        """Send one message.

        Raises:
            ClusterLostError: the supervisor is gone.
        """
        try:
            with self._sending:
                self._socket.sendall(json.dumps(message).encode() + b"\n")
        except OSError as exc:
            if not self._closed and self._watcher not in (None, threading.current_thread()):
                self._gone.wait(PARTING_S)  # what the supervisor said before its end ends this process, with the cause
            raise self._lost() from exc

    def receive(self, timeout_s: float | None) -> dict[str, Any] | None:
        """Return the next message, or None when there is none within ``timeout_s`` seconds.

        Raises:
            ClusterLostError: the supervisor is gone.
        """
        deadline = None if timeout_s is None else clock.monotonic() + timeout_s
        while b"\n" not in self._buffer:
            try:
                self._socket.settimeout(None if deadline is None else max(deadline - clock.monotonic(), 0.001))
                data = self._socket.recv(65_536)
            except TimeoutError:
                return None
            except OSError as exc:
                raise self._lost() from exc
            if not data or len(self._buffer) > MAX_LINE:
                raise self._lost()
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        message: dict[str, Any] = json.loads(line)
        return message

    def watch(self, on_message: Callable[[dict[str, Any]], None], on_lost: Callable[[], None]) -> None:
        """Hand every further message to ``on_message`` in a thread of its own, and say when the line is cut."""

        def listen() -> None:
            while not self._closed:
                try:
                    message = self.receive(None)
                except ClusterLostError:
                    self._parted.set()
                    self._gone.set()
                    if not self._closed and not self._leaving.locked():
                        on_lost()
                    return
                if message is not None and message["type"] == "bye":
                    self._awaits_end = bool(message["last"])
                    self._parted.set()
                elif message is not None and not self._leaving.locked():
                    on_message(message)

        self._watcher = threading.Thread(target=listen, name="eray-watch", daemon=True)
        self._watcher.start()

    def close(self) -> None:
        """Hang up; the supervisor takes it for a death unless it was told before."""
        self._closed = True
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def leave(self, cleared_s: float = CLEARED_S) -> None:
        """Say that this process leaves, and hang up. The last of a node stays until its supervisor has cleared up.

        Slurm kills what outlives the last task of a node (FACTS S15). ``cleared_s`` is how long it waits at most.
        """
        self._part({"type": "left"}, cleared_s)

    def leave_failed(self, cause: str, code: int) -> None:
        """Say why this process gives up, and hang up as ``leave`` does."""
        self._part({"type": "failed", "cause": cause, "code": code})

    def _part(self, message: Mapping[str, Any], cleared_s: float = CLEARED_S) -> None:
        if not self._leaving.acquire(blocking=False):  # the other thread does it, and ends this process
            self._gone.wait(PARTING_S + cleared_s)
            return
        with suppress(ClusterLostError):
            self.send(message)
            if self._watcher in (None, threading.current_thread()):
                self._read_parting(cleared_s)
            elif self._parted.wait(PARTING_S) and self._awaits_end:
                self._gone.wait(cleared_s)
        self.close()

    def _read_parting(self, cleared_s: float) -> None:
        deadline = clock.monotonic() + PARTING_S
        while (message := self.receive(deadline - clock.monotonic())) is not None:
            if message["type"] == "bye":
                if not message["last"]:
                    return
                deadline = clock.monotonic() + cleared_s

    def abandon(self) -> None:
        """Drop a fork's copy of the line without hanging up for its parent."""
        self._closed = True
        with suppress(OSError):
            os.close(self._socket.detach())

    def _lost(self) -> ClusterLostError:
        return ClusterLostError(
            self._node, "the supervisor of this node is gone", "see the first error of this job, and the logs of eray"
        )
