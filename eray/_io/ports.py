"""See which ports are taken on this host or free, and which of another host's give an answer."""

import errno
import selectors
import socket
from collections.abc import Iterable

from eray._io import clock

NO_ANSWER = (errno.ETIMEDOUT, errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EACCES, errno.EPERM)


def busy_ports(ports: Iterable[int], host: str = "") -> tuple[int, ...]:
    """Return those of ``ports`` on which this host cannot listen, at every address or at one; nothing is left open."""
    known = [family for family in (socket.AF_INET, socket.AF_INET6) if _is_known(family)]
    families = [socket.AF_INET6 if ":" in host else socket.AF_INET] if host else known
    return tuple(port for port in ports if not all(_is_free(family, host, port) for family in families))


def free_port() -> int:
    """Return a port on which nothing listened just now, chosen by the kernel; another process may be faster."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])


def silent_ports(addresses: Iterable[str], ports: Iterable[int], timeout_s: float) -> tuple[int, ...]:
    """Return those of ``ports`` from which nothing comes back at any of the addresses: no connection and no refusal.

    A port where nothing listens refuses at once; a firewall is silent, or says that the host cannot be reached. All
    are dialled together.
    """
    ports, answered = tuple(ports), set[int]()
    with selectors.DefaultSelector() as selector:
        for address in addresses:
            for port in ports:
                _dial(selector, address, port, answered)
        deadline = clock.monotonic() + timeout_s
        while selector.get_map() and (left := deadline - clock.monotonic()) > 0:
            for key, _ in selector.select(left):
                assert isinstance(key.fileobj, socket.socket)
                if key.fileobj.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) not in NO_ANSWER:
                    answered.add(key.data)
                selector.unregister(key.fileobj)
                key.fileobj.close()
        for key in tuple(selector.get_map().values()):
            assert isinstance(key.fileobj, socket.socket)
            key.fileobj.close()
    return tuple(port for port in ports if port not in answered)


def _dial(selector: selectors.BaseSelector, address: str, port: int, answered: set[int]) -> None:
    dialler = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
    dialler.setblocking(False)
    try:
        dialler.connect((address, port))
    except BlockingIOError:
        selector.register(dialler, selectors.EVENT_WRITE, port)
        return
    except OSError as exc:
        if exc.errno not in NO_ANSWER:
            answered.add(port)
    else:
        answered.add(port)
    dialler.close()


def _is_known(family: socket.AddressFamily) -> bool:
    try:
        socket.socket(family, socket.SOCK_STREAM).close()
    except OSError:
        return False
    return True


def _is_free(family: socket.AddressFamily, host: str, port: int) -> bool:
    # As asyncio's server binds, so that a port that is only left in TIME_WAIT counts as free.
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        try:
            probe.bind((host, port))
            probe.listen(1)
        except OSError:
            return False
    return True
