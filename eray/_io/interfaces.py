"""List the addresses of this node's network interfaces, as Linux tells them."""

import array
import fcntl
import ipaddress
import socket
import struct
from dataclasses import dataclass

_SIOCGIFCONF = 0x8912  # linux/sockios.h: the IPv4 addresses of all interfaces that are up
_ENTRY_BYTES = 40  # sizeof(struct ifreq) on 64-bit Linux: a name of 16 bytes, then a sockaddr
_MOST = 512


@dataclass(frozen=True)
class InterfaceAddress:
    """One address of one interface."""

    interface: str
    address: str


def local_addresses(if_inet6: str = "/proc/net/if_inet6") -> tuple[InterfaceAddress, ...]:
    """Return the addresses of this node, IPv4 first, without link-local IPv6; empty where the system is not Linux."""
    return (*_version_4(), *_version_6(if_inet6))


def _version_4() -> tuple[InterfaceAddress, ...]:
    room = array.array("B", bytes(_MOST * _ENTRY_BYTES))
    address, length = room.buffer_info()
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
            answer = fcntl.ioctl(asker.fileno(), _SIOCGIFCONF, struct.pack("iL", length, address))
    except OSError:
        return ()
    used = struct.unpack("iL", answer)[0]
    found = []
    for start in range(0, used, _ENTRY_BYTES):
        entry = room[start : start + _ENTRY_BYTES].tobytes()
        name = entry[:16].split(b"\0", 1)[0].decode(errors="replace").partition(":")[0]  # eth0:1 is an alias on eth0
        found.append(InterfaceAddress(name, socket.inet_ntoa(entry[20:24])))
    return tuple(found)


def _version_6(path: str) -> tuple[InterfaceAddress, ...]:
    try:
        with open(path, encoding="ascii") as stream:
            rows = [line.split() for line in stream]
    except OSError:
        return ()
    pairs = [(row[5], ipaddress.IPv6Address(bytes.fromhex(row[0]))) for row in rows if len(row) >= 6]
    return tuple(InterfaceAddress(name, str(address)) for name, address in pairs if not address.is_link_local)
