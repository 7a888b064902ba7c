"""A process that leaves stays as long as its supervisor wants, and no longer."""

import json
import socket
import threading
from collections.abc import Iterator

import pytest

from eray._io.link import Link

WAIT_S = 10.0


class Supervisor:
    """The other end of one link."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket, self._file = connected, connected.makefile("rb")

    def hear(self) -> dict[str, object]:
        said: dict[str, object] = json.loads(self._file.readline())
        return said

    def say(self, **message: object) -> None:
        self._socket.sendall(json.dumps(message).encode() + b"\n")

    def end(self) -> None:
        self._file.close()
        self._socket.close()


@pytest.fixture
def pair() -> Iterator[tuple[Link, Supervisor]]:
    ours, theirs = socket.socketpair()
    theirs.settimeout(WAIT_S)
    link, supervisor = Link(ours, "n1"), Supervisor(theirs)
    yield link, supervisor
    link.close()
    supervisor.end()


def in_thread(call: object) -> threading.Thread:
    thread = threading.Thread(target=call, daemon=True)  # type: ignore[arg-type]
    thread.start()
    return thread


@pytest.mark.parametrize("watched", [False, True])
def test_leave_last_of_the_node_waits_for_the_supervisors_end(pair: tuple[Link, Supervisor], watched: bool) -> None:
    link, supervisor = pair
    lost: list[str] = []
    if watched:
        link.watch(lambda message: lost.append(str(message)), lambda: lost.append("lost"))
    leaving = in_thread(link.leave)
    assert supervisor.hear() == {"type": "left"}
    supervisor.say(type="bye", last=True)
    supervisor.say(type="failed", cause="it is late for news", code=5)
    leaving.join(0.1)
    assert leaving.is_alive()
    supervisor.end()
    leaving.join(WAIT_S)
    assert not leaving.is_alive()
    assert lost == []


@pytest.mark.parametrize("watched", [False, True])
def test_leave_failed_among_others_does_not_wait(pair: tuple[Link, Supervisor], watched: bool) -> None:
    link, supervisor = pair
    if watched:
        link.watch(lambda message: None, lambda: None)
    leaving = in_thread(lambda: link.leave_failed("no memory", 5))
    assert supervisor.hear() == {"type": "failed", "cause": "no memory", "code": 5}
    supervisor.say(type="bye", last=False)
    leaving.join(WAIT_S)
    assert not leaving.is_alive()


def test_leave_from_the_watching_thread_at_the_news_of_a_failure(pair: tuple[Link, Supervisor]) -> None:
    link, supervisor = pair
    left = threading.Event()

    def on_message(message: dict[str, object]) -> None:
        link.leave()
        left.set()

    link.watch(on_message, lambda: None)
    supervisor.say(type="failed", cause="another process died", code=5)
    assert supervisor.hear() == {"type": "left"}
    supervisor.say(type="bye", last=True)
    assert not left.wait(0.1)
    supervisor.end()
    assert left.wait(WAIT_S)
