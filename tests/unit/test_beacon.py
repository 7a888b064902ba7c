"""The beacon over real sockets on loopback."""

import asyncio
import contextlib
import os
import resource
import socket
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from eray._core import handshake
from eray._core.handshake import Credentials, Found, Opener, Sealer
from eray._io.beacon import ATTEMPT_S, dial, listen
from eray._io.channel import Channel, read_frame
from eray.errors import BeaconError, ChannelClosed

HOST = "127.0.0.1"
OURS = Credentials("t" * 64, "0123abcd", "17.0")


def free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind((HOST, 0))
        return [probe.getsockname()[1] for probe in probes]


async def echo(channel: Channel) -> None:
    while True:
        message = await channel.receive()
        await channel.send({"echo": message, "peer": channel.peer})


def call(ports, deadline_s: float = 5.0, progress=lambda words: None, attempt_s: float = ATTEMPT_S, **changes):
    return dial(
        HOST,
        ports,
        replace(OURS, **changes),
        node="n2",
        deadline_s=deadline_s,
        progress=progress,
        attempt_s=attempt_s,
    )


def serve(ports, handler=echo, **changes):
    return listen(HOST, ports, replace(OURS, **changes), handler=handler)


@contextlib.asynccontextmanager
async def stranger(port: int, says: bytes | None):
    async def speak(reader, writer):
        with contextlib.suppress(OSError):
            if says is None:
                await reader.read()
            else:
                await reader.readuntil(b"\r\n\r\n")
                writer.write(says)
                await writer.drain()
            writer.close()

    async with await asyncio.start_server(speak, HOST, port):
        yield


def test_beacon_and_node_talk_both_ways():
    async def main():
        ports = free_ports(3)
        server = await serve(ports)
        assert server.port == ports[0]
        channel = await call(ports)
        assert channel.remote == (HOST, ports[0])
        for number in range(3):
            await channel.send({"n": number})
            assert await channel.receive() == {"echo": {"n": number}, "peer": "n2"}
        await channel.send({"big": "x" * 1_000_000})
        assert len((await channel.receive())["echo"]["big"]) == 1_000_000
        await channel.close()
        with pytest.raises(ChannelClosed, match="this side closed it"):
            await channel.send({})
        await server.close()
        await server.close()

    asyncio.run(main())


def test_beacon_wrong_token_is_found_at_the_deadline_and_told_to_the_head():
    async def main():
        ports = free_ports(1)
        server = await serve(ports)
        with pytest.raises(BeaconError, match="another token") as caught:
            await call(ports, deadline_s=0.2, token="u" * 64)
        assert str(ports[0]) in str(caught.value)
        await server.close()

    asyncio.run(main())


def test_beacon_wrong_secret_is_named_at_once_on_both_sides():
    async def main():
        ports = free_ports(2)
        server = await serve(ports)
        started = time.monotonic()
        with pytest.raises(BeaconError, match="ERAY_SECRET") as caught:
            await call(ports, token="u" * 64, fingerprint="ffffffff")
        assert time.monotonic() - started < 1.0
        assert caught.value.node == "n2"
        assert "another secret" in str(caught.value)
        await asyncio.sleep(0)
        assert server.refused[HOST, Found.OTHER_SECRET] == "this cluster, but with another secret (node 'n2')"
        await server.close()

    asyncio.run(main())


def test_beacon_of_another_cluster_is_passed_over():
    async def main():
        ports = free_ports(2)
        other = await serve(ports[:1], key="18.0", fingerprint="ffffffff", token="v" * 64)
        server = await serve(ports)
        assert server.port == ports[1]
        channel = await call(ports)
        assert channel.remote[1] == ports[1]
        await channel.close()
        await server.close()
        with pytest.raises(BeaconError, match=r"another cluster of eray \('18.0'\)"):
            await call(ports, deadline_s=0.2)
        await other.close()

    asyncio.run(main())


def test_beacon_silent_stranger_costs_one_attempt():
    assert ATTEMPT_S == 1.0, "what a node gives a port, by docs/security.md"

    async def main():
        ports = free_ports(2)
        async with stranger(ports[0], None):
            server = await serve(ports)
            started = time.monotonic()
            channel = await call(ports, attempt_s=0.2)
            assert 0.18 < time.monotonic() - started < 0.8
            await channel.close()
            await server.close()

    asyncio.run(main())


@pytest.mark.parametrize(
    "says",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        *(b"no", b"", b"x" * 2_000_000),
        *(b"eray\x00\x00\x00\x02{}", b"eray\xff" * 9),
    ],
    ids=range(6),
)
def test_beacon_stranger_that_speaks_costs_nothing(says):
    async def main():
        ports = free_ports(2)
        async with stranger(ports[0], says):
            server = await serve(ports)
            started = time.monotonic()
            channel = await call(ports)
            assert time.monotonic() - started < 0.5
            await channel.close()
            await server.close()
            with pytest.raises(BeaconError, match=f"port {ports[0]}: another program"):
                await call(ports, deadline_s=0.1)

    asyncio.run(main())


def test_beacon_all_ports_busy_names_them():
    async def main():
        ports = free_ports(2)
        async with stranger(ports[0], None), stranger(ports[1], None):
            with pytest.raises(BeaconError, match=f"{ports[0]}, {ports[1]}.*ERAY_PORT_RANGE"):
                await serve(ports)

    asyncio.run(main())


def test_beacon_foreign_address_is_an_error_at_once():
    with pytest.raises(BeaconError, match="ERAY_INTERFACE"):
        asyncio.run(listen("203.0.113.77", [24001, 24002], OURS, handler=echo))


def test_beacon_node_that_comes_first_waits_for_the_head():
    async def main():
        ports, said = free_ports(8), []
        waiting = asyncio.create_task(call(ports, progress=said.append))
        await asyncio.sleep(0.1)
        server = await serve(ports)
        channel = await waiting
        await channel.close()
        await server.close()
        assert len(said) == 1  # one line as long as nothing changes
        assert "nothing listens" in said[0]

    asyncio.run(main())


def test_beacon_no_head_says_what_was_found_where():
    hosts, ports = [HOST, "x" * 64], free_ports(2)  # no name is that long: no name server is asked
    with pytest.raises(BeaconError) as caught:
        asyncio.run(dial(hosts, ports, OURS, node="n2", deadline_s=0.2, progress=lambda words: None))
    text = str(caught.value)
    assert f"{HOST} ports {ports[0]}, {ports[1]}: nothing listens" in text
    assert f"{hosts[1]}: the name does not resolve" in text
    assert f"{HOST}: the name does not resolve" not in text  # as a last look would find that has no time left
    assert "within 0.2 s" in text
    assert "ERAY_CLUSTER_TIMEOUT_S" in text


async def raw_session(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, Sealer, Opener]:
    """Do what a node does, by hand, to be able to send what no node sends."""
    reader, writer = await asyncio.open_connection(HOST, port)
    said = handshake.hello(OURS, "n2", b"n" * 32)
    writer.write(handshake.frame(said))
    session = handshake.accept(OURS, said, await read_frame(reader, 4096))
    writer.write(handshake.frame(session.client_proof))
    return reader, writer, Sealer(session.client_key), Opener(session.server_key)


@pytest.mark.parametrize("kind", ["tampered", "replayed", "reflected", "oversized", "garbage"])
def test_beacon_bad_frame_closes_the_channel_unread(kind):
    received, reasons = [], []

    async def collect(channel: Channel) -> None:
        await channel.send({"hello": 1})
        try:
            while True:
                received.append(await channel.receive())
        except ChannelClosed as exc:
            reasons.append(exc.reason)
            raise

    async def main():
        server = await serve(free_ports(1), collect)
        reader, writer, sealer, _ = await raw_session(server.port)
        good = handshake.frame(sealer.seal({"n": 0}))
        from_server = handshake.frame(await read_frame(reader, 4096))
        bad = {
            "tampered": good[:-2] + b"7}",
            "replayed": good + good,
            "reflected": from_server,
            "oversized": b"eray" + (2 << 20).to_bytes(4, "big"),
            "garbage": b"GET / HTTP/1.1\r\n\r\n",
        }
        writer.write(bad[kind])
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
        writer.close()
        await server.close()

    asyncio.run(main())
    assert received == ([{"n": 0}] if kind == "replayed" else [])
    words = {"replayed": "replayed", "oversized": "bytes", "garbage": "it says"}
    assert words.get(kind, "changed on its way") in reasons[0]


async def overheard(port: int) -> tuple[bytes, bytes]:
    """Return all that a node and the beacon on ``port`` say to each other before the first message."""
    said: tuple[bytearray, bytearray] = (bytearray(), bytearray())

    async def pass_on(source, sink, kept):
        while data := await source.read(65536):
            kept += data
            sink.write(data)
        sink.close()

    async def between(reader, writer):
        there_reader, there_writer = await asyncio.open_connection(HOST, port)
        await asyncio.gather(pass_on(reader, there_writer, said[0]), pass_on(there_reader, writer, said[1]))

    async with await asyncio.start_server(between, HOST, 0) as relay:
        channel = await call([relay.sockets[0].getsockname()[1]])
        await channel.send({"n": 0})
        await channel.receive()
        await channel.close()
    return bytes(said[0]), bytes(said[1])


def test_beacon_old_conversation_helps_neither_a_false_node_nor_a_false_head():
    reached = []

    async def note(channel: Channel) -> None:
        reached.append(await channel.receive())
        await channel.send({})

    async def main():
        ports = free_ports(2)
        server = await serve(ports[1:], note)
        of_node, of_head = await overheard(ports[1])
        reader, writer = await asyncio.open_connection(HOST, ports[1])
        writer.write(of_node)
        with contextlib.suppress(ConnectionError):
            await reader.read()
        writer.close()
        assert {*server.refused} == {(HOST, Found.OTHER_TOKEN)}
        async with stranger(ports[0], of_head):
            channel = await call(ports)
            assert channel.remote[1] == ports[1]
            await channel.close()
        await server.close()

    asyncio.run(main())
    assert reached == [{"n": 0}]


@contextlib.contextmanager
def many_descriptors(count: int):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, count), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def flood(port: int, count: int) -> list[socket.socket]:
    """Open connections that say nothing."""
    silent = [socket.socket() for _ in range(count)]
    for each in silent:
        each.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            each.connect((HOST, port))
    return silent


SERVER = """
import asyncio, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))
from eray._core.handshake import Credentials
from eray._io.beacon import listen
async def greet(channel):
    await channel.send({})
    await channel.receive()
async def main():
    server = await listen("127.0.0.1", [0], Credentials("t" * 64, "0123abcd", "17.0"), handler=greet)
    print(server.port, flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
"""


@pytest.fixture
def small_head():
    """The port and pid of a beacon in a process with 1,024 descriptors, as Linux gives by default."""
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path)}
    head = subprocess.Popen([sys.executable, "-S", "-c", SERVER], env=environ, stdout=subprocess.PIPE, text=True)
    try:
        yield int(head.stdout.readline()), head.pid
    finally:
        head.kill()
        head.communicate()


@many_descriptors(3000)
def test_beacon_flood_of_silent_connections_keeps_no_node_out(small_head):
    port, pid = small_head

    async def main():
        for _ in range(3):
            channel = await call([port])
            assert await channel.receive() == {}
            await channel.close()

    silent = flood(port, 2000)
    try:
        asyncio.run(main())
        assert len(os.listdir(f"/proc/{pid}/fd")) < 512
    finally:
        for each in silent:
            each.close()


@many_descriptors(3000)
def test_beacon_lets_in_more_nodes_at_once_than_may_be_unproven(small_head):
    async def main():
        channels = await asyncio.gather(*(call([small_head[0]], deadline_s=10.0) for _ in range(600)))
        assert await asyncio.gather(*(channel.receive() for channel in channels)) == [{}] * 600
        await asyncio.gather(*(channel.close() for channel in channels))

    asyncio.run(main())


def test_beacon_stranger_that_comes_again_and_again_is_told_once(caplog):
    async def main():
        server = await serve(free_ports(1))
        for _ in range(20):
            reader, writer = await asyncio.open_connection(HOST, server.port)
            writer.write(b"GET / HTTP/1.1\r\n\r\n")
            with contextlib.suppress(ConnectionError):
                await reader.read()
            writer.close()
        await server.close()

    asyncio.run(main())
    assert caplog.text.count("the beacon refused") == 1


def test_beacon_client_without_proof_reaches_no_handler():
    reached = []

    async def note(channel: Channel) -> None:
        reached.append(channel.peer)

    async def main():
        server = await serve(free_ports(1), note)
        for last in (handshake.frame(bytes(32)), handshake.frame(b"x" * 33), b"junk" * 20, b""):
            reader, writer = await asyncio.open_connection(HOST, server.port)
            writer.write(handshake.frame(handshake.hello(OURS, "n2", b"n" * 32)))
            await read_frame(reader, 4096)
            writer.write(last)
            writer.write_eof()
            with contextlib.suppress(ConnectionError):
                await reader.read()
            writer.close()
        await server.close()
        assert {*server.refused} == {(HOST, Found.OTHER_TOKEN), (HOST, Found.STRANGER)}

    asyncio.run(main())
    assert reached == []


def test_beacon_hundred_nodes_at_once():
    async def main():
        ports = free_ports(8)
        server = await serve(ports[1:])
        channels = await asyncio.gather(*(call(ports, deadline_s=10.0) for _ in range(100)))
        await asyncio.gather(*(channel.send({"n": number}) for number, channel in enumerate(channels)))
        answers = await asyncio.gather(*(channel.receive() for channel in channels))
        assert [answer["echo"]["n"] for answer in answers] == list(range(100))
        await server.close()
        for channel in channels:
            with pytest.raises(ChannelClosed):
                await channel.receive()
            await channel.close()

    asyncio.run(main())


def test_channel_concurrent_senders_keep_the_order_of_the_seal():
    async def main():
        server = await serve(free_ports(1))
        channel = await call([server.port])
        await asyncio.gather(*(channel.send({"n": number, "pad": "x" * 50_000}) for number in range(40)))
        seen = [(await channel.receive())["echo"]["n"] for _ in range(40)]
        assert sorted(seen) == list(range(40))
        await channel.close()
        await server.close()

    asyncio.run(main())


def test_channel_cancelled_receive_loses_nothing():
    async def main():
        start = asyncio.Event()

        async def late(channel: Channel) -> None:
            await start.wait()
            await channel.send({"n": 1})
            await channel.receive()

        server = await serve(free_ports(1), late)
        channel = await call([server.port])
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await channel.receive()
        start.set()
        assert await channel.receive() == {"n": 1}
        await channel.close()
        await server.close()

    asyncio.run(main())


DYING_NODE = """
import asyncio, os, sys
from eray._core.handshake import Credentials
from eray._io.beacon import dial
async def main():
    channel = await dial("127.0.0.1", [int(sys.argv[1])], Credentials("t" * 64, "0123abcd", "17.0"), node="n2",
                         deadline_s=5, progress=print)
    await channel.send({"pid": os.getpid()})
    await channel.receive()
asyncio.run(main())
"""


def test_channel_of_a_killed_peer_is_closed_at_once():
    async def main():
        ended = asyncio.get_running_loop().create_future()

        async def watch(channel: Channel) -> None:
            pid = (await channel.receive())["pid"]
            assert pid == node.pid
            node.kill()
            killed_at = time.monotonic()
            with pytest.raises(ChannelClosed, match="closed it or died"):
                await channel.receive()
            ended.set_result(time.monotonic() - killed_at)

        server = await serve(free_ports(1), watch)
        environ = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path)}
        node = subprocess.Popen([sys.executable, "-S", "-c", DYING_NODE, str(server.port)], env=environ)
        try:
            assert await asyncio.wait_for(ended, 10) < 1.0
        finally:
            node.kill()
            node.wait()
            await server.close()

    asyncio.run(main())


def test_beacon_handler_that_fails_ends_its_channel_only():
    async def fail_once(channel: Channel) -> None:
        if (await channel.receive())["fail"]:
            raise KeyError("a fault of the handler's")
        await channel.send({"ok": True})

    async def main():
        server = await serve(free_ports(1), fail_once)
        first, second = await call([server.port]), await call([server.port])
        await first.send({"fail": True})
        with pytest.raises(ChannelClosed):
            await first.receive()
        await second.send({"fail": False})
        assert await second.receive() == {"ok": True}
        await first.close()
        await second.close()
        await server.close()

    asyncio.run(main())
