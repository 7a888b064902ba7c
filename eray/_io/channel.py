"""Carry sealed messages between two nodes that have proved themselves to each other."""

import asyncio
import json
import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from eray._core import handshake
from eray._core.handshake import FrameError, HandshakeError, Opener, Sealer
from eray.errors import ChannelClosed

SEND_TIMEOUT_S = 30.0
CLOSE_TIMEOUT_S = 1.0
PART_CHARACTERS = 400_000  # ASCII, which a second escaping makes twice as long at most: they fit a frame


async def read_frame(reader: asyncio.StreamReader, limit: int) -> bytes:
    """Read one whole frame of the handshake.

    Raises:
        HandshakeError: it is not a frame of eray's, or longer than ``limit``.
        asyncio.IncompleteReadError: the connection ended before its end.
    """
    length = handshake.frame_length(await reader.readexactly(handshake.HEADER_BYTES), limit)
    return await reader.readexactly(length)


class Channel:
    """One connection to a proven peer. ``peer`` names it, ``remote`` is its address and port."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, peer: str, sealer: Sealer, opener: Opener
    ) -> None:
        self.peer = peer
        self.remote: tuple[str, int] = tuple((writer.get_extra_info("peername") or ("", 0))[:2])
        self._reader, self._writer, self._sealer, self._opener = reader, writer, sealer, opener
        self._length: int | None = None  # of a frame whose header is read: a cancelled receive() loses nothing
        self._ended: str | None = None

    def notice_silence(self, timeout_s: float) -> None:
        """End the channel when the peer's kernel does not answer for ``timeout_s``, to the second.

        A node that lost its power or its cable sends no end of file. The kernels ask each other every second, so that
        a supervisor that is only slow is not taken for dead (tcp(7)).
        """
        connection: socket.socket = self._writer.get_extra_info("socket")
        seconds = max(round(timeout_s), 2)
        probes = {"TCP_KEEPIDLE": 1, "TCP_KEEPINTVL": 1, "TCP_KEEPCNT": seconds - 1, "TCP_USER_TIMEOUT": seconds * 1000}
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in probes.items():
            if hasattr(socket, name):
                connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)

    async def send(self, message: Mapping[str, Any]) -> None:
        """Send one message; several tasks may do so at once.

        Raises:
            ChannelClosed: the peer is gone, or took nothing for 30 s.
            FrameError: the message is larger than 1 MiB; nothing was sent.
        """
        if self._ended is not None:
            raise ChannelClosed(self.peer, self._ended)
        self._writer.write(handshake.frame(self._sealer.seal(message)))
        try:
            async with asyncio.timeout(SEND_TIMEOUT_S):
                await self._writer.drain()
        except TimeoutError as exc:
            raise self._end(f"it took no data for {SEND_TIMEOUT_S:g} s") from exc
        except OSError as exc:
            raise self._end(f"sending failed ({exc.strerror or exc})") from exc

    async def send_large(self, message: Mapping[str, Any]) -> None:
        """Send one message of any size in parts, which ``receive_large`` puts together; raises as ``send``."""
        text = json.dumps(message)
        for begin in range(0, len(text), PART_CHARACTERS):
            end = begin + PART_CHARACTERS
            await self.send({"part": text[begin:end], "more": end < len(text)})

    async def receive_large(self) -> dict[str, Any]:
        """Wait for a message that was sent in parts; raises as ``receive``."""
        parts, more = [], True
        while more:
            message = await self.receive()
            parts.append(str(message["part"]))
            more = bool(message["more"])
        whole: dict[str, Any] = json.loads("".join(parts))
        return whole

    async def receive(self) -> dict[str, Any]:
        """Wait for the next message, without a deadline of its own; one task at a time. It may be cancelled.

        Raises:
            ChannelClosed: the peer closed the channel or died, or a frame was tampered with.
        """
        if self._ended is not None:
            raise ChannelClosed(self.peer, self._ended)
        try:
            if self._length is None:
                header = await self._reader.readexactly(handshake.HEADER_BYTES)
                self._length = handshake.frame_length(header, handshake.MAX_FRAME_BYTES)
            sealed = await self._reader.readexactly(self._length)
            self._length = None
            return self._opener.open(sealed)
        except asyncio.IncompleteReadError as exc:
            raise self._end("the other side closed it or died") from exc
        except TimeoutError as exc:
            raise self._end("its node does not answer: no power, or no network?") from exc
        except OSError as exc:
            raise self._end(f"receiving failed ({exc.strerror or exc})") from exc
        except (FrameError, HandshakeError) as exc:
            raise self._end(str(exc)) from exc

    async def close(self) -> None:
        """Close the channel; what was sent still arrives. A second call does nothing."""
        self._ended = self._ended or "this side closed it"
        await close_writer(self._writer)

    def _end(self, reason: str) -> ChannelClosed:
        self._ended = self._ended or reason
        self._writer.transport.abort()
        return ChannelClosed(self.peer, self._ended)


async def close_writer(writer: asyncio.StreamWriter) -> None:
    """Close a connection and wait a moment for what is still on its way out."""
    writer.close()
    with suppress(OSError):  # TimeoutError is one
        async with asyncio.timeout(CLOSE_TIMEOUT_S):
            await writer.wait_closed()
