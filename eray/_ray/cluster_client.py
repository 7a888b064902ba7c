"""The coordinator as calls of those who start, watch and look at worlds; those of their processes: ``client``.

What the coordinator refuses is raised as an error of eray; every call may also raise ClusterLostError. Only
``topology`` loads pydantic.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from eray._core.timing import POLL_S
from eray._ray.asking import Answer, Call, ask, ray_call

if TYPE_CHECKING:
    from eray._core.topology import Node, Topology

ANSWER_S = 10.0
"""How late an answer may be, beyond what the call blocks."""


class ClusterClient:
    """Asks one coordinator, the actor ``handle``. Safe to use from several threads."""

    def __init__(self, handle: Any, *, call: Call = ray_call) -> None:
        self.handle = handle
        self._call = call

    def ping(self, *, timeout_s: float = 30.0) -> Answer:
        """Return ``pid``, ``epoch`` and ``version`` of the coordinator."""
        return self._ask("ping", (), timeout_s)

    def topology(self, *, timeout_s: float = 30.0) -> "Topology":
        """Return the cluster as the coordinator sees it now."""
        from eray._core.topology import Topology

        return Topology.model_validate(self._ask("topology", (), timeout_s))

    def notes(self, *, timeout_s: float = 30.0) -> list[dict[str, Any]]:
        """Return what processes without a supervisor noted of their start, as tracks."""
        return list(self._ask("notes", (), timeout_s)["tracks"])

    def add_node(self, node: "Node", *, timeout_s: float = 30.0) -> None:
        """Tell that a node's Ray is up."""
        self._ask("add_node", (node.model_dump(mode="json"),), timeout_s)

    def find_node(self, fields: Mapping[str, Any], *, timeout_s: float = 30.0) -> dict[str, Any]:
        """Return the node with this ``ray_node_id``; one of a Ray that eray did not start is taken in, with a rank."""
        return dict(self._ask("find_node", (dict(fields),), timeout_s)["node"])

    def lose_node(self, node_rank: int, reason: str, *, timeout_s: float = 30.0) -> None:
        """Tell that a node is gone; worlds with processes there fail."""
        self._ask("lose_node", (node_rank, reason), timeout_s)

    def declare_world(
        self,
        name: str,
        process_count: int,
        *,
        generation: int | None = None,
        layout: Sequence[tuple[int, int, int, str]] | None = None,
        timeout_s: float = 30.0,
    ) -> int:
        """Open a world and return its generation; None takes the next one.

        ``layout`` has (node_rank, local_index, local_count, node) by process index.
        """
        rows = None if layout is None else [list(row) for row in layout]
        world = {"name": name, "process_count": process_count, "generation": generation, "layout": rows}
        return int(self._ask("declare_world", (world,), timeout_s)["generation"])

    def died(
        self,
        world: str,
        generation: int,
        process_index: int,
        cause: str,
        code: int | None = None,
        *,
        timeout_s: float = 30.0,
    ) -> None:
        """Tell that a process is gone; unless it had left, its world fails. ``code`` 0 is news only before it runs."""
        self._ask("died", (world, generation, process_index, cause, code), timeout_s)

    def watch(self, version: int, *, wait_s: float = POLL_S) -> Answer:
        """Return a summary of all worlds when it is no longer that of ``version``, or after ``wait_s`` (30 at most)."""
        return self._ask("watch", (version,), wait_s + ANSWER_S, wait_s)

    def warn(self, reason: str, *, timeout_s: float = 30.0) -> None:
        """Tell that the job is about to end."""
        self._ask("warn", (reason,), timeout_s)

    def _ask(self, method: str, args: Sequence[Any], timeout_s: float, wait_s: float | None = None) -> Answer:
        return ask(self.handle, self._call, method, args, timeout_s, wait_s)
