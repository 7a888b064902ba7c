"""The coordinator as calls of those who start, watch and look at worlds; those of their processes: ``client``.

What the coordinator refuses is raised as an error of eray; every call may also raise ClusterLostError. Only
``topology`` loads pydantic.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from eray._core.timing import POLL_S, Deadline, Reminder
from eray._io import clock
from eray._ray.asking import Answer, Call, ask
from eray._ray.notices import Told
from eray.errors import NodesMissingError

if TYPE_CHECKING:
    from eray._core.topology import Node, Topology

Progress = Callable[[str], None]
Show = Callable[[Told], None]
ANSWER_S = 10.0
"""How late an answer may be, beyond what the call blocks."""


def reminding(progress: Progress | None) -> Progress:
    """Return what passes lines about one wait, which begins now, on to ``progress``, none sooner than it is due."""
    reminder = Reminder(now=clock.monotonic())

    def tell(text: str) -> None:
        line = reminder.line(text, clock.monotonic())
        if progress is not None and line is not None:
            progress(line)

    return tell


class ClusterClient:
    """Asks one coordinator, the actor ``handle``, by Ray unless ``call`` does it. Safe to use from several threads."""

    def __init__(self, handle: Any, *, call: Call | None = None) -> None:
        self.handle = handle
        self._call = call or _by_ray

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
        """Return a summary of worlds and nodes when it is no longer that of ``version``, after 30 s at most."""
        return self._ask("watch", (version,), wait_s + ANSWER_S, wait_s)

    def await_nodes(self, *, timeout_s: float, show: Show = lambda told: None) -> None:
        """Return when the Ray of every node of `eray run` or `eray up` is up, or was before the node was lost.

        Elsewhere it returns at once: a step's nodes come with their tasks, if they do, and a Ray that eray did not
        start has no number of nodes to wait for. ``show`` is told how far it is, again and again.

        Raises:
            NodesMissingError: some are not up in time; it names them.
        """
        deadline, version = Deadline.after(timeout_s, now=clock.monotonic()), -1
        while True:
            wait_s = min(POLL_S, deadline.remaining_s(clock.monotonic()))
            # At once the first time, so that no change is missed.
            answer = self.watch(version, wait_s=wait_s)
            version, awaited = int(answer["version"]), answer["awaited_nodes"]
            names, count, expected = awaited["names"], int(awaited["count"]), int(awaited["expected"])
            if not count:
                return
            if deadline.is_over(clock.monotonic()):
                more = f" and {count - len(names)} more" if count > len(names) else ""
                raise NodesMissingError(", ".join(names) + more, expected, timeout_s, "bring Ray up")
            show(("nodes start Ray", expected - count, expected, names))

    def warn(self, reason: str, *, timeout_s: float = 30.0) -> None:
        """Tell that the job is about to end."""
        self._ask("warn", (reason,), timeout_s)

    def _ask(self, method: str, args: Sequence[Any], timeout_s: float, wait_s: float | None = None) -> Answer:
        return ask(self.handle, self._call, method, args, timeout_s, wait_s)


def _by_ray(handle: Any, method: str, args: Sequence[Any], timeout_s: float) -> Answer:
    from eray._ray.calls import ray_call

    return ray_call(handle, method, args, timeout_s)
