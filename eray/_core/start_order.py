"""What waits for what while a cluster and its worlds start: the one table that the critical path is found by.

``after`` is what must be over before a span can begin, ``until`` what it then waits for itself. Needs that name a span
which was not recorded fall back on that span's own needs. Of needs that end at the same time the first counts.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto


class Whose(Enum):
    """On which tracks a span is looked for, seen from the track that needs it."""

    OWN = auto()
    NODE = auto()
    NODE_FIRST = auto()
    """The first process of the node to be so far."""
    HEAD = auto()
    EVERY_NODE = auto()
    OTHER_NODES = auto()
    PROCESS_0 = auto()
    EVERY_PROCESS = auto()


@dataclass(frozen=True)
class Need:
    """A span that must be over, or have begun; of several tracks' the last counts."""

    span: str
    whose: Whose = Whose.OWN
    begun: bool = False


@dataclass(frozen=True)
class Order:
    """What a span needs to begin, and to end."""

    after: tuple[Need, ...] = ()
    until: tuple[Need, ...] = ()


def _all_begin(span: str) -> tuple[Need, ...]:
    return (Need(span, Whose.EVERY_PROCESS, begun=True),)


NODE: Mapping[str, Order] = {
    "supervisor": Order(after=(Need("environment", Whose.NODE_FIRST),)),  # which starts it, where tasks are processes
    "lock": Order(after=(Need("supervisor"),)),
    "roll-call": Order(after=(Need("lock"),), until=(Need("lock", Whose.HEAD),)),
    "gcs": Order(after=(Need("lock"),)),
    "raylet": Order(after=(Need("gcs"), Need("roll-call"), Need("gcs", Whose.HEAD))),
    "import ray": Order(after=(Need("lock"),)),
    "coordinator": Order(after=(Need("raylet"),), until=(Need("import ray"),)),
    "ready": Order(after=(Need("raylet"),), until=(Need("coordinator", Whose.HEAD),)),
    "stop": Order(),
}
"""A node's supervisor."""

HEAD: Mapping[str, Order] = {
    **NODE,
    "roll-call": Order(after=(Need("lock"),), until=(Need("roll-call", Whose.OTHER_NODES),)),
    "raylet": Order(after=(Need("gcs"),)),
}
"""The head's: its Ray starts without waiting for the roll-call."""

PROCESS: Mapping[str, Order] = {
    # `eray run` starts processes after the roll-call, a restart when those of the generation before are gone and nodes
    # enough are there. Tasks of a step come before all of that, and did not wait for what ends after their begin.
    "program": Order(
        after=(Need("roll-call", Whose.HEAD), Need("stop", Whose.EVERY_NODE), Need("ready", Whose.EVERY_NODE))
    ),
    "environment": Order(after=(Need("program"),)),
    "import jax": Order(after=(Need("environment"),)),
    "supervisor": Order(after=(Need("environment"),), until=(Need("lock", Whose.NODE),)),
    "import ray": Order(after=(Need("supervisor"),)),
    "ready": Order(after=(Need("import ray"),), until=(Need("ready", Whose.NODE),)),
    "attach": Order(after=(Need("ready"),)),
    "join": Order(after=(Need("attach"), Need("import jax")), until=_all_begin("join")),
    "port": Order(after=(Need("join"),)),
    "publish": Order(after=(Need("port"),)),
    "address": Order(after=(Need("join"),), until=(Need("publish", Whose.PROCESS_0),)),
    "dial": Order(after=(Need("address"),), until=(Need("initialise", Whose.PROCESS_0, begun=True),)),
    "initialise": Order(after=(Need("dial"),), until=_all_begin("initialise")),
    "check": Order(after=(Need("initialise"),), until=_all_begin("check")),
    "all running": Order(after=(Need("check"),), until=_all_begin("all running")),
}
"""One process of a world."""

FIRST_PROCESS: Mapping[str, Order] = {
    **PROCESS,
    "initialise": Order(after=(Need("publish"),), until=_all_begin("initialise")),
}
"""Process 0, which others dial."""

FIRST_COLLECTIVE = Need("all running", Whose.EVERY_PROCESS)
ALL_READY = Need("ready", Whose.EVERY_NODE)
