"""Which address a node tells the others, decided from look-ups that the caller makes."""

import ipaddress
from collections.abc import Callable, Mapping

from eray.errors import AddressError


def node_address(
    node: str, node_count: int, lookup: Callable[[str], str | None], known: Mapping[str, str] | None = None
) -> str:
    """Return the address by which other nodes reach ``node``.

    Args:
        node: Slurm's name of the node.
        node_count: nodes of the cluster; only a cluster of one may use loopback.
        lookup: resolves a name to an IP address, None where it does not resolve.
        known: addresses that Slurm itself gave, by node name; they come before any look-up.

    Raises:
        AddressError: the name does not resolve, or resolves to loopback although there are other nodes.
    """
    address = (known or {}).get(node) or lookup(node)
    if not address:
        raise AddressError(
            node, "its name does not resolve", "name the network interface to use by ERAY_INTERFACE, or mend the DNS"
        )
    if node_count > 1 and _is_loopback(address):
        raise AddressError(
            node,
            f"its name resolves to {address}, which other nodes cannot reach",
            f"take {node} out of the 127.x line of /etc/hosts on that node, or set ERAY_INTERFACE",
        )
    return address


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"
