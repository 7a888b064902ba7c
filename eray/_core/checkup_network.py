"""Judge what a node sees of the network: names, its own address, and the ports of the beacon."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address

from eray._core.finding import Fault, Finding, error, fault, note, ok, warning
from eray._core.place import Place

MOST_NAMES = 256
"""So many names a node asks for at most: a thousand nodes that ask for a thousand names are a burden on the DNS."""
SHOWN, MOST_PORTS = 4, 8
MEND = "mend DNS or /etc/hosts on this node"


@dataclass(frozen=True)
class Ports:
    """The candidate ports of the job's beacon, or of that of any cluster of this machine, as seen here.

    ``busy`` are those that something else has on this host, the head; without a job those before the first free one.
    ``cluster_pid`` is the supervisor of the job's own cluster, where it runs here. ``silent`` are those from which
    nothing came back, not even a refusal, to a node that is not the head.
    """

    candidates: tuple[int, ...]
    busy: tuple[int, ...] = ()
    cluster_pid: int | None = None
    silent: tuple[int, ...] = ()


@dataclass(frozen=True)
class Network:
    """What was found.

    ``resolved`` has the addresses of each name that was asked for, the host's own name among them: empty where it has
    none, None where no answer came in time. ``address`` is this node's own.
    """

    hostname: str
    resolved: Mapping[str, Sequence[str] | None]
    interface: str | None
    interfaces: tuple[tuple[str, str], ...]
    address: str | Fault
    ports: Ports | None


def names_to_ask(place: Place) -> tuple[str, ...]:
    """Return the names to look up here: the head's and this node's, then the nodes that follow, 256 at most."""
    start = place.nodes.index(place.name) if place.name in place.nodes else 0
    others = (*place.nodes[start:], *place.nodes[:start])
    first = (place.head,) if place.head is not None else ()
    return tuple(dict.fromkeys((*first, *others)))[:MOST_NAMES]


def check_network(place: Place, network: Network) -> tuple[Finding, ...]:
    """Judge it all."""
    return (
        _names(place, network),
        _address(place, network),
        _interface(network),
        _ports(place, network),
    )


def _names(place: Place, network: Network) -> Finding:
    name, asked = "names", names_to_ask(place)
    if not asked:
        return ok(name, "no other node")
    late = [each for each in asked if network.resolved.get(each) is None]
    lost = [each for each in asked if network.resolved.get(each) == ()]
    words = [f"{_listed(lost)} not known"] if lost else []
    words += [f"no answer for {_listed(late)}"] if late else []
    found = f"{' and '.join(words)}, of {len(asked)} names"
    if place.several and not place.is_head and place.head is not None:
        if place.head in (*late, *lost):
            remedy = f"{MEND}, or set ERAY_HEAD to its address"
            return error(name, f"{found}; the head {place.head} is among them", remedy)
        head = network.resolved[place.head] or ()
        if all(map(_is_loopback, head)):
            found = f"the head {place.head} is {_listed(head)} here, which is this node itself"
            return error(name, found, "take it out of the 127.x line of /etc/hosts on this node")
    if words and not place.inside:
        return note(name, found, "nothing, unless you want to reach the nodes from this host by name")
    if words:
        return warning(name, found, f"{MEND}; eray needs the head's name only, other programs need more")
    known = [f"{each} {(network.resolved[each] or ('?',))[0]}" for each in asked]
    rest = len(place.nodes) - len(asked)
    return ok(name, _listed(known) + (f"; {rest} more were not asked for here" if rest > 0 else ""))


def _address(place: Place, network: Network) -> Finding:
    name = "address"
    if isinstance(network.address, Fault):
        return ok(name, "see interface") if network.interface else fault(name, network.address)
    own = network.resolved.get(network.hostname)
    if place.several and own and all(map(_is_loopback, own)):
        return warning(
            name,
            f"{network.address}, but the host name {network.hostname} is {_listed(own)}",
            "give it its real address in /etc/hosts: JAX's CPU collectives (gloo) tell other nodes what it resolves to",
        )
    return ok(name, network.address)


def _interface(network: Network) -> Finding:
    name, listing = "interface", _listed([f"{name} {address}" for name, address in network.interfaces], 4 * SHOWN)
    if network.interface is None:
        return ok(name, f"ERAY_INTERFACE is not set; there are {listing or 'none that can be read'}")
    if isinstance(network.address, Fault):
        return fault(name, network.address)
    return ok(name, f"ERAY_INTERFACE={network.interface} is {network.address}")


def _ports(place: Place, network: Network) -> Finding:
    name, ports = "ports", network.ports
    if ports is None:
        if place.nodes:
            return ok(name, "not a node of the job: no beacon is sought from here")
        return ok(name, "not tried: the nodes of the job are not known")
    listing = _ports_listed(ports.candidates)
    if ports.cluster_pid is not None:
        return ok(name, f"the job's cluster runs here (supervisor {ports.cluster_pid})")
    if place.is_head or not place.nodes:
        free = [port for port in ports.candidates if port not in ports.busy]
        if not free:
            found, remedy = f"all are busy here: {listing}", "set ERAY_PORT_RANGE to a range with free ports"
            if place.several:
                return error(name, found, remedy)
            return warning(name, f"{found}; `eray status` would not see a cluster of this machine", remedy)
        if not place.nodes:
            return ok(name, f"{free[0]} is free here, of {listing}")
        busy = f"; busy: {_ports_listed(ports.busy)}" if ports.busy else ""
        return ok(name, f"{len(free)} of {len(ports.candidates)} are free here, {free[0]} is the first{busy}")
    if network.resolved.get(place.head or "") in (None, ()):
        return note(name, f"not tried: the name of the head {place.head} does not resolve", "see names")
    if not ports.silent:
        return ok(name, f"the head {place.head} can be reached on {listing}")
    silent = " ".join(map(str, ports.silent))
    remedy = "open ERAY_PORT_RANGE, and the ports that the kernel chooses, in the firewall between the nodes"
    if len(ports.silent) == len(ports.candidates):
        return error(
            name, f"no answer from the head {place.head} on any of {silent}", f"see whether it is up; {remedy}"
        )
    return warning(name, f"no answer from the head {place.head} on {silent}", remedy)


def _is_loopback(address: str) -> bool:
    return ip_address(address.partition("%")[0]).is_loopback


def _ports_listed(ports: Sequence[int]) -> str:
    if len(ports) > MOST_PORTS and ports[-1] - ports[0] == len(ports) - 1:
        return f"{ports[0]} to {ports[-1]}"
    more = f" and {len(ports) - MOST_PORTS} more" if len(ports) > MOST_PORTS else ""
    return " ".join(map(str, ports[:MOST_PORTS])) + more


def _listed(names: Sequence[str], most: int = SHOWN) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
