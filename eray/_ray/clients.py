"""The processes of this node as its supervisor sees them: each holds a unix socket open (its side: ``_io/link``)."""

import asyncio
import contextlib
import json
import os
import socket
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from eray._io.link import MAX_LINE
from eray._ray.relay import NodeRelay

Message = Mapping[str, Any]
PLACE = ("world", "generation", "process_index")


@dataclass
class Client:
    """One connected process. ``place`` is that of ``PLACE`` once it has joined."""

    pid: int
    writer: asyncio.StreamWriter
    hello: Message
    place: tuple[str, int, int] | None = None
    left: bool = False
    facts: dict[str, Any] = field(default_factory=dict)

    def send(self, message: Message) -> None:
        """Queue one message; a process that is gone is noticed by its end of file, not here."""
        with contextlib.suppress(OSError, RuntimeError):
            self.writer.write(json.dumps(message).encode() + b"\n")


class Clients:
    """Serves the socket of a run directory and keeps who is there."""

    def __init__(
        self,
        path: str,
        *,
        welcome: Callable[[Client], list[Message]],
        left: Callable[[Client], None],
        failed: Callable[[Client, Message], None],
        gone: Callable[[Client], None],
        told: Callable[[Message], None],
    ) -> None:
        self._path, self._welcome, self._left, self._failed, self._gone = path, welcome, left, failed, gone
        self._told = told
        self.relay = NodeRelay(told, lambda: sum(not client.left for client in self.connected))
        self._server: asyncio.Server | None = None
        self.connected: list[Client] = []
        self.seen = 0

    async def start(self) -> None:
        """Listen. A socket that an earlier supervisor left is replaced: the caller holds the node's lock."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._path)
        self._server = await asyncio.start_unix_server(self._serve, self._path, limit=MAX_LINE)

    @property
    def all_left(self) -> bool:
        """Whether nobody is connected but those who said that they leave."""
        return all(client.left for client in self.connected)

    def has_other(self, gone: Client) -> bool:
        """Tell whether a process that is gone only claimed the place that another one, still here, has joined."""
        place = (gone.hello.get("world"), gone.hello.get("process_index"))
        others = (each.place for each in self.connected if each is not gone and each.place is not None)
        return gone.place is None and any((world, index) == place for world, _, index in others)

    def broadcast(self, message: Message) -> None:
        """Send one message to every process of this node."""
        for client in self.connected:
            client.send(message)

    async def drain(self, timeout_s: float) -> None:
        """Wait until what was sent is on its way, ``timeout_s`` at most."""
        with contextlib.suppress(TimeoutError, OSError):
            async with asyncio.timeout(timeout_s):
                for client in list(self.connected):
                    with contextlib.suppress(OSError):
                        await client.writer.drain()

    def refuse(self) -> None:
        """Stop listening; who is connected stays so until our end."""
        if self._server is not None:
            self._server.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._path)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client: Client | None = None
        try:
            hello = json.loads(await reader.readuntil())
            pid = _peer_pid(writer.get_extra_info("socket"))
            if pid == 0:
                writer.write(json.dumps(_FOREIGN_NAMESPACE).encode() + b"\n")
                return
            client = Client(pid, writer, hello)
            self.connected.append(client)
            self.seen += 1
            for message in self._welcome(client):
                client.send(message)
            while line := await reader.readline():
                self._take(client, json.loads(line))
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError, ValueError):
            pass  # it died, or it is no process of eray's: what it was to us decides below
        except asyncio.CancelledError:
            pass  # our own end; Python 3.11's asyncio would print a cancelled handler as an error
        finally:
            with contextlib.suppress(OSError, RuntimeError):
                writer.close()
            if client is not None:
                self.connected.remove(client)
                self._gone(client)

    def _take(self, client: Client, message: Message) -> None:
        if message["type"] == "member":
            client.place = (message["world"], message["generation"], message["process_index"])
            client.left = False
        elif message["type"] == "left":
            client.left = True
            self._left(client)
        elif message["type"] == "failed":
            client.left = True
            self._failed(client, message)
        elif message["type"] == "ask":
            self.relay.take(client.send, message)
        elif message["type"] in ("warned", "spans"):
            self._told(message)


_FOREIGN_NAMESPACE = {
    "type": "error",
    "error": {
        "type": "ConfigurationError",
        "args": [
            "this process and its node's supervisor are in different PID namespaces (two containers?); "
            "start all processes of a node in one container, or Ray cannot find its raylet"
        ],
    },
}


def _peer_pid(connected: socket.socket) -> int:
    # unix(7), SO_PEERCRED: the pid as seen from our PID namespace, 0 where it cannot be seen.
    credentials = connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid: int = struct.unpack("3i", credentials)[0]
    return pid
