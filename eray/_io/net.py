"""Find this node's address, and what names and ports answer from here."""

import errno
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

from eray._core.naming import LOOPBACK
from eray._io.interfaces import InterfaceAddress, local_addresses
from eray.errors import AddressError, SettingError

PROXY_VARIABLES = ("http_proxy", "https_proxy", "grpc_proxy", "all_proxy")


def node_address(
    name: str,
    interface: str | None,
    multi_node: bool,
    *,
    hostname: str | None = None,
    look_up: Callable[[str], Sequence[str]] | None = None,
    here: Callable[[str], bool] | None = None,
    addresses: Callable[[], Sequence[InterfaceAddress]] = local_addresses,
) -> str:
    """Return the address by which the other nodes of the cluster reach this one.

    ``interface`` (ERAY_INTERFACE, an interface's name or a CIDR) decides where it is given; otherwise what the node
    name, then the host name, resolves to, as far as it is an address of this machine. IPv4 comes before IPv6. A
    cluster of one node (``multi_node`` false) may have a loopback address.

    Raises:
        AddressError: no address serves; the message says what was found and which file or variable to mend.
        SettingError: ``interface`` is no interface and no network of this node.
    """
    if interface is not None:
        return _interface_address(name, interface, multi_node, addresses())
    look_up, here, host = look_up or resolve, here or is_local, hostname or socket.gethostname()
    found: dict[str, list[str]] = {each: list(look_up(each)) for each in dict.fromkeys((name, host))}
    candidates = [address for group in found.values() for address in _by_preference(group)]
    for address in candidates:
        if not ip_address(address).is_loopback and here(address):
            return address
    if not multi_node:
        return LOOPBACK
    raise _no_address(name, found)


def resolve(host: str) -> list[str]:
    """Return the addresses of a host name or address, each once, in the resolver's order; none where it has none."""
    try:
        rows = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    return list(dict.fromkeys(str(row[4][0]) for row in rows))


def is_local(address: str) -> bool:
    """Tell whether ``address`` is one of this machine's, by binding to it."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((address, 0))
    except OSError as exc:
        return exc.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT, errno.EINVAL)
    return True


def port_is_open(host: str, port: int, timeout_s: float = 1.0) -> bool:
    """Tell whether something accepts TCP connections at ``host`` and ``port``."""
    try:
        with socket.create_connection((host, port), timeout=timeout_s):
            return True
    except (OSError, UnicodeError):
        return False


def port_is_free(port: int) -> bool:
    """Tell whether a server could listen on a TCP port of this host, at all its addresses."""
    try:
        with socket.create_server(("", port), reuse_port=False):
            return True
    except OSError:
        return False


def proxy_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the proxy variables that are set, in both spellings. gRPC, and so JAX, obeys the lower-case ones (J8)."""
    names = (spelling for name in PROXY_VARIABLES for spelling in (name, name.upper()))
    return {name: environ[name] for name in names if environ.get(name)}


def without_proxies(environ: Mapping[str, str], hosts: Iterable[str]) -> dict[str, str]:
    """Return the variables to set so that no proxy stands between this process and ``hosts``; none where none is set.

    What the user listed stays. gRPC reads ``no_grpc_proxy`` and, only without it, ``no_proxy``, and knows no ``*``
    (FACTS J8); Python's own clients take ``no_proxy`` for all hosts when it is ``*`` alone.
    """
    if not proxy_variables(environ):
        return {}
    listed = environ.get("no_proxy") or environ.get("NO_PROXY") or ""
    merged = _merge(listed, hosts)
    values = {"no_grpc_proxy": _merge(environ.get("no_grpc_proxy") or listed, hosts)}
    if listed.strip() != "*":
        values |= {"no_proxy": merged, "NO_PROXY": merged}
    return values


def _merge(listed: str, hosts: Iterable[str]) -> str:
    entries = [entry.strip() for entry in listed.split(",") if entry.strip() not in ("", "*")]
    return ",".join(dict.fromkeys([*entries, *hosts]))


def _by_preference(addresses: Iterable[str]) -> list[str]:
    usable = [address for address in addresses if not ip_address(address).is_link_local]
    return sorted(usable, key=lambda address: (ip_address(address).is_loopback, ip_address(address).version))


def _interface_address(name: str, interface: str, multi_node: bool, there: Sequence[InterfaceAddress]) -> str:
    network = _network(interface)
    if network is None:
        fitting = [each.address for each in there if each.interface == interface]
    else:
        fitting = [each.address for each in there if ip_address(each.address) in network]
    listing = ", ".join(f"{each.interface} {each.address}" for each in there) or "none that can be read"
    if not fitting:
        reason = f"node {name} has no address there; its interfaces are {listing}"
        raise SettingError("ERAY_INTERFACE", interface, reason)
    chosen = next((address for address in _by_preference(fitting)), fitting[0])
    if multi_node and ip_address(chosen).is_loopback:
        found = f"ERAY_INTERFACE={interface} is loopback ({chosen}), which no other node can reach"
        raise AddressError(name, found, f"name another interface of this node: {listing}")
    return chosen


def _network(text: str) -> IPv4Network | IPv6Network | None:
    try:
        return ip_network(text, strict=False)
    except ValueError:
        return None


def _no_address(name: str, found: Mapping[str, Sequence[str]]) -> AddressError:
    words = ", ".join(f"{host} resolves to {' and '.join(group) or 'nothing'}" for host, group in found.items())
    if any(ip_address(address).is_loopback for group in found.values() for address in group):
        reason = f"{words}: loopback, which no other node can reach"
        return AddressError(
            name,
            reason,
            "give the name its real address in /etc/hosts on that node, or set ERAY_INTERFACE to its network",
        )
    reason = f"{words}: no address of an interface of this node"
    return AddressError(
        name, reason, "mend the name in DNS or /etc/hosts, or set ERAY_INTERFACE to the cluster's network"
    )
