"""Remember what the dialled ports of the head turned out to be, and say what that means."""

from collections.abc import Mapping
from types import MappingProxyType

from eray._core.handshake import Found, HandshakeError
from eray.errors import BeaconError

_FATAL: Mapping[Found, str] = MappingProxyType(
    {
        Found.OTHER_SECRET: "the home directory is not shared between the nodes, or ERAY_SECRET differs: set "
        "ERAY_SECRET to the same 32 characters or more in the batch script",
        Found.OTHER_PROTOCOL: "install the same version of eray on all nodes",
    }
)
_HINTS: Mapping[Found, str] = MappingProxyType(
    {
        Found.UNRESOLVED: "make the head's name resolve on this node, or set ERAY_HEAD to its address",
        Found.NOTHING: "look at the log of eray on the head: its supervisor did not start or ended",
        Found.UNREACHABLE: "open ERAY_PORT_RANGE between the nodes, or set ERAY_INTERFACE to the network they share",
    }
)


class Search:
    """One node's search for the beacon of its head, among ``hosts``, for at most ``deadline_s`` seconds."""

    def __init__(self, node: str, hosts: tuple[str, ...], deadline_s: float) -> None:
        self.node, self.hosts, self.deadline_s = node, hosts, deadline_s
        self._found: dict[tuple[str, int | None], tuple[Found, str]] = {}

    def note(self, host: str, port: int | None, found: Found, detail: str = "") -> None:
        """Keep what was found last on a port of a host (``port`` is None for the host as a whole)."""
        if port is not None:
            self._found.pop((host, None), None)
        self._found[host, port] = (found, detail)

    def knows(self, host: str) -> bool:
        """Tell whether anything was found on a host."""
        return any(each == host for each, _ in self._found)

    def words(self) -> str:
        """Return what was found, ports with the same finding together."""
        groups: dict[tuple[str, str], list[int]] = {}
        for (host, port), (found, detail) in self._found.items():
            ports = groups.setdefault((host, str(HandshakeError(found, detail))), [])
            if port is not None:
                ports.append(port)
        parts = []
        for (host, what), ports in groups.items():
            where = f" port{'s' if len(ports) > 1 else ''} {', '.join(map(str, ports))}" if ports else ""
            parts.append(f"{host}{where}: {what}")
        return "; ".join(parts) or "no port was tried"

    def problem(self, *, over: bool) -> BeaconError | None:
        """Return why it makes no sense to go on, after a whole round; ``over`` tells that the time is."""
        kinds = {found for found, _ in self._found.values()}
        for found, remedy in _FATAL.items():
            if found in kinds:
                return BeaconError(self.node, f"the head's beacon does not know this node: {self.words()}", remedy)
        if not over:
            return None
        remedies = [remedy for found, remedy in _HINTS.items() if found in kinds]
        remedies.append("a slow start needs a larger ERAY_CLUSTER_TIMEOUT_S")
        found_words = f"no beacon of this cluster answered within {self.deadline_s:g} s ({self.words()})"
        return BeaconError(self.node, found_words, "; ".join(remedies))
