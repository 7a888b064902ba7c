"""A supervisor that ends tells its processes why, also those that only begin to speak to it."""

import asyncio
import contextlib
import json
import os
import socket
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from test_nodespec import SPEC

from eray._core.handshake import Credentials
from eray._core.naming import LOOPBACK
from eray._core.timing import Deadline
from eray._io import beacon, clock
from eray._io.channel import Channel
from eray._io.link import Link
from eray._ray.clients import Client, Clients
from eray._reach import await_word
from eray.errors import BeaconError, ClusterLostError, SecretError, error_data

WAIT_S = 20.0
CAUSE = SecretError("/home/me/.eray/secret", "is another one", "use one home")
FAILED = {"type": "failed", "cause": str(CAUSE), "code": 3, "error": error_data(CAUSE)}
HELLO = {"type": "hello", "world": "main", "process_index": 0, "process_count": 2, "indexes_on_node": [0]}


def ignore(*told: object) -> None:
    del told


def clients(path: str, welcome: Callable[[Client], list[dict[str, object]]]) -> Clients:
    return Clients(path, welcome=welcome, left=ignore, failed=ignore, gone=ignore, told=ignore)  # type: ignore[arg-type]


def hear(link: Link) -> None:
    """Go on as ``connect()`` does after its hello."""
    await_word(link, "ready", "n1", Deadline.after(WAIT_S, now=clock.monotonic()), ignore)


@pytest.mark.parametrize("speaks", ["before", "after"])
@pytest.mark.parametrize("count", [1, 50])
def test_who_had_connected_hears_the_cause(tmp_path: Path, speaks: str, count: int) -> None:
    """None is accepted yet when the supervisor stops listening: the kernel keeps them, and would cut them off."""
    path = f"{tmp_path}/sock"

    async def main() -> list[Link]:
        served = clients(path, lambda client: [FAILED])
        served.start()
        links = [Link.open(path, "n1") for _ in range(count)]  # the loop has no turn meanwhile
        if speaks == "before":
            for link in links:
                link.send(HELLO)
        stopping = asyncio.create_task(served.refuse())
        if speaks == "after":
            await asyncio.sleep(0)
            for link in links:
                link.send(HELLO)
        await stopping
        await served.drain(WAIT_S)
        with pytest.raises(OSError, match=path):
            os.stat(path)
        return links

    for link in asyncio.run(main()):
        with pytest.raises(SecretError, match="is another one"):
            hear(link)
        link.close()


def test_process_that_speaks_to_one_who_is_gone_hears_first_what_that_said() -> None:
    ours, theirs = socket.socketpair()
    link, heard, raised = Link(ours, "n1"), [], threading.Event()

    def on_message(message: dict[str, object]) -> None:
        raised.wait(0.2)  # what is raised meanwhile would be told instead
        heard.append(message["cause"])

    theirs.sendall(json.dumps(FAILED).encode() + b"\n")
    theirs.close()
    link.watch(on_message, ignore)
    with pytest.raises(ClusterLostError):
        link.send({"type": "member"})
    before = list(heard)
    raised.set()
    link.close()
    assert before == [FAILED["cause"]]


def test_process_that_comes_when_its_supervisor_has_failed_hears_why(tmp_path: Path) -> None:
    """The head refuses this node before the process that started its supervisor has spoken to that."""
    run_dir = tmp_path / "r"

    async def refuse(channel: Channel) -> None:
        raise AssertionError(f"{channel.peer} has proved itself")

    async def main() -> None:
        strangers = Credentials("u" * 64, "0123", SPEC.key)
        port = free_port()
        head = await beacon.listen(LOOPBACK, [port], strangers, handler=refuse)
        spec = replace(
            SPEC,
            purpose="tasks",
            world=None,
            nodes=("n2",),  # as if it were alone: then it needs no address but loopback
            head_hosts=(LOOPBACK,),
            ports=(port,),
            tmpdir=str(tmp_path),
            run_dir=str(run_dir),
            ray_dir=str(run_dir / "ray"),
            state_dir=str(tmp_path / "state"),
        )
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "eray", "node"),
            env={**os.environ, "HOME": str(tmp_path)},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stderr is not None
        try:
            async with asyncio.timeout(WAIT_S):
                child.stdin.write(spec.to_json().encode())
                child.stdin.close()
                assert json.loads(await child.stdout.readline()) == {"listening": True}
                while b"another secret" not in (line := await child.stderr.readline()):
                    assert line, "the supervisor has ended without a word"
                link = Link.open(spec.socket_path, spec.node)
                link.send(HELLO)
                with pytest.raises(BeaconError, match="another secret"):
                    await asyncio.to_thread(hear, link)
                link.leave()
                assert await child.wait() == BeaconError.exit_code
        finally:
            with contextlib.suppress(ProcessLookupError):
                child.kill()
            await child.wait()
            await head.close()

    asyncio.run(main())
    assert not run_dir.exists()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
    return port
