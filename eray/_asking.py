"""How a connected process asks the coordinator: as a driver of Ray, or by its node's supervisor (ERAY_ATTACH)."""

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from eray._io.link import Link
from eray._ray.asking import Answer
from eray.errors import ClusterLostError

if TYPE_CHECKING:
    from eray._ray.client import CoordinatorClient


NO_CLUSTER_UNASKED = ("RAY_ENABLE_AUTO_CONNECT", "0")
"""With it Ray's functions refuse a process that is no driver; else they start another cluster, without a word."""


class Stoppable(Protocol):
    """Calls that another thread can end."""

    def __call__(self, handle: Any, method: str, args: Sequence[Any], timeout_s: float) -> Answer:
        """Carry one call, as ``asking.Call`` says."""

    def stop(self) -> None:
        """End all calls; what waits in one gets a ConnectionStateError."""


@dataclass(frozen=True)
class Asking:
    """``client`` asks for the program, ``beside`` for what goes on beside it, by ``calls``.

    ``take`` takes the supervisor's answers.
    """

    client: "CoordinatorClient"
    beside: "CoordinatorClient"
    calls: Stoppable
    take: Callable[[Mapping[str, Any]], None] = lambda message: None


def by_ray(node: str) -> Asking:
    """Ask as a driver, which this process is.

    Raises:
        ClusterLostError: there is no coordinator; ``node`` is this process's.
    """
    from eray._ray.calls import find_coordinator
    from eray._ray.client import CoordinatorClient
    from eray._ray.stoppable import StoppableCall

    handle = find_coordinator()
    if handle is None:
        raise ClusterLostError(node, "the cluster has no coordinator", "see the log of eray on the head node")
    calls = StoppableCall()
    return Asking(CoordinatorClient(handle), CoordinatorClient(handle, call=calls), calls)


def by_line(link: Link, attach: Callable[[], None], environ: MutableMapping[str, str]) -> Asking:
    """Ask over the line to the supervisor; ``attach`` makes this process a driver, when that is needed."""
    from eray._ray.relayed import RelayedCall, RelayedClient

    environ.setdefault(*NO_CLUSTER_UNASKED)
    call, calls = RelayedCall(link), RelayedCall(link)

    def take(message: Mapping[str, Any]) -> None:
        for each in (call, calls):
            each.take(message)

    return Asking(RelayedClient(call, attach), RelayedClient(calls, attach), calls, take)
