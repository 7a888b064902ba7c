"""Let the nodes of a cluster find its head: the head listens on a candidate port, the others dial them in turn.

What both sides say to prove themselves stands in ``_core/handshake.py``, what nodes report over the channel in
``_core/rollcall.py``.
"""

import asyncio
import errno
import logging
import random
import resource
import secrets
from asyncio import StreamReader, StreamWriter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from eray._core import handshake
from eray._core.handshake import Credentials, Found, HandshakeError, Opener, Sealer
from eray._core.search import Search
from eray._core.timing import Reminder
from eray._io import clock
from eray._io.channel import Channel, close_writer, read_frame
from eray._io.limits import soft_limit
from eray.errors import BeaconError, ChannelClosed

ATTEMPT_S = 1.0  # a stranger on a candidate port costs no more
GREETING_S = 2.0  # the server's patience with a connection that has not proved itself: a node gives up sooner
RESOLVE_S = 5.0
CUT_SHORT = (Found.UNRESOLVED, Found.UNREACHABLE, Found.SILENT)  # what a look that has no time finds
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.05, 1.0
NONCE_BYTES = 32
BACKLOG = 4096  # all nodes of a large job may dial in the same moment
BATCH = 32  # connections that asyncio accepts before it serves those it has
UNPROVEN_SHARE = 4  # connections that have proved nothing take a quarter of the descriptors at most

_log = logging.getLogger(__name__)
Handler = Callable[[Channel], Awaitable[None]]


class BeaconServer:
    """A listening beacon: ``port`` is the candidate it took, ``refused`` says whom it did not accept, and why."""

    def __init__(self, credentials: Credentials, handler: Handler) -> None:
        self.port = 0
        self.refused: dict[tuple[str, Found], str] = {}
        self._credentials, self._handler = credentials, handler
        self._listener: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._unproven: dict[StreamWriter, bool] = {}  # the oldest first, and whether it has said hello
        self._most = min((soft_limit(resource.RLIMIT_NOFILE) or UNPROVEN_SHARE * BACKLOG) // UNPROVEN_SHARE, BACKLOG)

    async def start(self, host: str, port: int) -> None:
        """Listen on one port; raises OSError where that is not possible."""
        self._listener = await asyncio.start_server(self._connected, host, port, backlog=BATCH)
        for each in self._listener.sockets:
            with each.dup() as same:
                same.listen(BACKLOG)
        self.port = self._listener.sockets[0].getsockname()[1]

    def refuse(self) -> None:
        """Stop listening; who is connected stays."""
        if self._listener is not None:
            self._listener.close()

    async def close(self) -> None:
        """Stop listening, cancel the handlers and close their channels. A second call does nothing."""
        self.refuse()
        tasks = self._tasks - {asyncio.current_task()}  # a handler may close the beacon
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _connected(self, reader: StreamReader, writer: StreamWriter) -> None:
        self._unproven[writer] = False
        if len(self._unproven) > self._most:  # a node comes again as long as it has not sent its proof
            silent = next(each for each, spoke in self._unproven.items() if not spoke)
            del self._unproven[silent]
            silent.transport.abort()
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: StreamReader, writer: StreamWriter) -> None:
        try:
            async with asyncio.timeout(GREETING_S):
                said = await read_frame(reader, handshake.MAX_GREETING_BYTES)
                self._unproven[writer] = True
                channel = await _answer(said, reader, writer, self._credentials)
        except (HandshakeError, asyncio.IncompleteReadError, OSError) as exc:
            self._refuse(writer, exc)
            await close_writer(writer)
            return
        except asyncio.CancelledError:
            writer.transport.abort()
            raise
        finally:
            self._unproven.pop(writer, None)
        try:
            await self._handler(channel)
        except ChannelClosed as exc:
            _log.info("%s", exc)
        except Exception:  # the boundary of the caller's code: one node's fault must not end the beacon
            _log.exception("the beacon's handler of %s failed", channel.peer)
        finally:
            await channel.close()

    def _refuse(self, writer: StreamWriter, exc: Exception) -> None:
        # A node that gave up its attempt, or a port scan: nothing to tell. Another program or another secret: to tell.
        if isinstance(exc, HandshakeError):
            peer = (writer.get_extra_info("peername") or ("?",))[0]
            if (peer, exc.found) not in self.refused:  # once, however often a stranger comes
                _log.warning("the beacon refused %s: %s", peer, exc)
            self.refused[peer, exc.found] = str(exc)


async def listen(host: str, ports: Sequence[int], credentials: Credentials, *, handler: Handler) -> BeaconServer:
    """Listen on the first of ``ports`` that is free, and run ``handler`` for each node that proves itself.

    The channel is closed when its handler returns. An exception of the handler's is logged.

    Raises:
        BeaconError: all ports are busy, or ``host`` is no address of this machine.
    """
    server = BeaconServer(credentials, handler)
    for port in ports:
        try:
            await server.start(host, port)
        except OSError as exc:
            if exc.errno in (errno.EADDRINUSE, errno.EACCES):
                continue
            remedy = "set ERAY_INTERFACE, or ERAY_HEAD where this is not the head"
            here = host or "any address"
            raise BeaconError(host or "head", f"cannot listen on {here}: {exc.strerror or exc}", remedy) from exc
        _log.info("beacon of cluster %s listens on %s port %s", credentials.key, host, server.port)
        return server
    busy = ", ".join(map(str, ports))
    raise BeaconError(
        host or "head", f"all ports of the beacon are busy ({busy})", "set ERAY_PORT_RANGE to a range with free ports"
    )


async def dial(
    hosts: Sequence[str] | str,
    ports: Sequence[int],
    credentials: Credentials,
    *,
    node: str,
    deadline_s: float,
    progress: Callable[[str], None],
    attempt_s: float = ATTEMPT_S,
) -> Channel:
    """Find the beacon of our cluster on the head's candidate ports and return the proven channel to it.

    Tries again, with pauses of 0.05 to 1 s, until ``deadline_s`` seconds are over; ``progress`` gets a line when what
    is found changes, and every 30 s. A silent port costs ``attempt_s`` seconds a round.

    Raises:
        BeaconError: the head holds another secret or speaks another protocol (at once), or did not answer in time.
    """
    search = Search(node, (hosts,) if isinstance(hosts, str) else tuple(hosts), deadline_s)
    deadline, pause = clock.monotonic() + deadline_s, FIRST_PAUSE_S
    reminder = Reminder(now=clock.monotonic())
    while True:
        channel = await _round(search, ports, credentials, deadline, attempt_s)
        if channel is not None:
            return channel
        now, words = clock.monotonic(), search.words()
        if (problem := search.problem(over=now >= deadline)) is not None:
            raise problem
        if (line := reminder.line(f"waiting for the head: {words}", now)) is not None:
            progress(line)
        await asyncio.sleep(min(pause * random.uniform(0.75, 1.0), deadline - now))
        pause = min(pause * 2, LONGEST_PAUSE_S)


async def _round(
    search: Search, ports: Sequence[int], credentials: Credentials, deadline: float, attempt_s: float
) -> Channel | None:
    addresses = [(host, address) for host in search.hosts for address in await _resolve(host, deadline)]
    for host in set(search.hosts) - {host for host, _ in addresses}:
        _note(search, deadline, host, None, HandshakeError(Found.UNRESOLVED))
    for port in ports:
        for host, address in addresses:
            left = deadline - clock.monotonic()
            if left <= 0:
                return None
            try:
                return await _attempt(address, port, credentials, search.node, host, min(attempt_s, left))
            except HandshakeError as exc:
                _note(search, deadline, host, port, exc)
    return None


def _note(search: Search, deadline: float, host: str, port: int | None, exc: HandshakeError) -> None:
    """Keep what was found, unless our own deadline cut the look short: what an earlier one found says more."""
    if clock.monotonic() < deadline or exc.found not in CUT_SHORT or not search.knows(host):
        search.note(host, port, exc.found, exc.detail)


async def _resolve(host: str, deadline: float) -> list[str]:
    with suppress(OSError, UnicodeError):  # gaierror and TimeoutError are OSErrors: the name may come up later
        async with asyncio.timeout(min(RESOLVE_S, deadline - clock.monotonic())):
            rows = await asyncio.get_running_loop().getaddrinfo(host, None, type=1)
            return list(dict.fromkeys(str(row[4][0]) for row in rows))
    return []


async def _attempt(address: str, port: int, credentials: Credentials, node: str, head: str, limit_s: float) -> Channel:
    reached, writer = Found.UNREACHABLE, None
    try:
        async with asyncio.timeout(limit_s):
            reader, writer = await asyncio.open_connection(address, port)
            reached = Found.SILENT
            channel = await _greet(reader, writer, credentials, node, f"head {head} port {port}")
            writer = None
            return channel
    except TimeoutError:
        raise HandshakeError(reached) from None
    except ConnectionRefusedError:
        raise HandshakeError(Found.NOTHING) from None
    except asyncio.IncompleteReadError as exc:
        detail = f"it says {exc.partial!r}" if exc.partial else "it closed the connection"
        raise HandshakeError(Found.STRANGER, detail) from None
    except OSError as exc:
        raise HandshakeError(reached, exc.strerror or str(exc)) from None
    finally:
        if writer is not None:
            writer.transport.abort()


async def _greet(reader: StreamReader, writer: StreamWriter, credentials: Credentials, node: str, peer: str) -> Channel:
    said = handshake.hello(credentials, node, secrets.token_bytes(NONCE_BYTES))
    writer.write(handshake.frame(said))
    session = handshake.accept(credentials, said, await read_frame(reader, handshake.MAX_GREETING_BYTES))
    writer.write(handshake.frame(session.client_proof))
    await writer.drain()
    return Channel(reader, writer, peer, Sealer(session.client_key), Opener(session.server_key))


async def _answer(said: bytes, reader: StreamReader, writer: StreamWriter, credentials: Credentials) -> Channel:
    answer = handshake.answer(credentials, said, secrets.token_bytes(NONCE_BYTES))
    writer.write(handshake.frame(answer.payload))
    await writer.drain()
    if answer.session is None:
        raise HandshakeError(answer.refused or Found.STRANGER, f"node {answer.node[:60]!a}")
    handshake.check_proof(answer.session, await read_frame(reader, handshake.PROOF_BYTES))
    return Channel(reader, writer, answer.node, Sealer(answer.session.server_key), Opener(answer.session.client_key))
