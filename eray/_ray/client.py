"""The coordinator as typed calls, each with a deadline.

What the coordinator refuses, and the failure of a world, are raised as errors of eray; every call may also raise
ClusterLostError. Only ``topology`` loads pydantic.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eray._core.missing import name_missing
from eray._core.timing import POLL_S, Deadline, poll_s
from eray._io import clock
from eray._ray.asking import Answer, Call, ask, ray_call
from eray._ray.asking import find_coordinator as find_coordinator
from eray.errors import BarrierTimeoutError, JoinTimeoutError, WorldFailedError, error_of

if TYPE_CHECKING:
    from eray._core.topology import Node, Topology

ANSWER_S = 10.0  # how late an answer may be, beyond what the call blocks

Progress = Callable[[str], None]


@dataclass(frozen=True)
class JoinAnswer:
    """One process's place in its world. ``local_device_ids`` None leaves the choice to JAX."""

    phase: str
    generation: int
    epoch: int
    process_index: int
    process_count: int
    node_rank: int
    local_index: int
    local_device_ids: tuple[int, ...] | None
    device_rule: str | None
    coordinator_address: str | None


class CoordinatorClient:
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

    def join(self, request: Mapping[str, Any], *, timeout_s: float, progress: Progress | None = None) -> JoinAnswer:
        """Return this process's place when all processes of its world have joined.

        Raises:
            JoinTimeoutError: some did not come in time; it names them.
            WorldFailedError, DevicePlanError, WorldContradictionError: the world failed.
            DuplicateProcessError, StaleGenerationError: this process is not wanted.
        """
        world = str(request["world"])
        deadline = Deadline.after(timeout_s, now=clock.monotonic())
        asked = dict(request)
        while True:
            answer = self._poll("join", (asked,), deadline, world)
            if answer["done"]:
                return _join_answer(answer)
            stage = "join" if answer["generation"] is not None else "leave the world's earlier life"
            asked["generation"] = answer["generation"] or asked.get("generation")
            missing = _missing(answer)
            if deadline.is_over(clock.monotonic()):
                raise JoinTimeoutError(world, missing, timeout_s, stage)
            if _speaks(answer, int(asked["process_index"])):
                _say(progress, f"world {world!r}: waiting for {missing} to {stage}")

    def publish(
        self, world: str, generation: int, process_index: int, address: str, *, timeout_s: float = 30.0
    ) -> None:
        """Tell where JAX's coordination service listens (process 0)."""
        self._ask("publish", (world, generation, process_index, address), timeout_s)

    def await_address(
        self, world: str, generation: int, process_index: int, *, timeout_s: float, progress: Progress | None = None
    ) -> str:
        """Return where JAX's coordination service listens, when process 0 has published it.

        Raises:
            JoinTimeoutError, WorldFailedError: it never will.
        """
        deadline = Deadline.after(timeout_s, now=clock.monotonic())
        while True:
            answer = self._poll("await_address", (world, generation, process_index), deadline, world)
            if answer["done"]:
                return str(answer["coordinator_address"])
            if deadline.is_over(clock.monotonic()):
                raise JoinTimeoutError(world, _missing(answer), timeout_s, "publish the coordinator's address")
            _say(progress, f"world {world!r}: waiting for {_missing(answer)} to publish the coordinator's address")

    def report(
        self,
        world: str,
        generation: int,
        process_index: int,
        stage: str,
        detail: str = "",
        *,
        timeout_s: float = 30.0,
    ) -> None:
        """Tell that this process is dialled, initialised, running, left, or failed (``detail`` says why)."""
        self._ask("report", (world, generation, process_index, stage, detail), timeout_s)

    def await_stage(
        self,
        world: str,
        generation: int,
        process_index: int,
        stage: str,
        *,
        timeout_s: float,
        progress: Progress | None = None,
    ) -> None:
        """Return when all processes have come as far as ``stage``.

        Raises:
            JoinTimeoutError, WorldFailedError: they never will.
        """
        deadline = Deadline.after(timeout_s, now=clock.monotonic())
        while True:
            answer = self._poll("await_stage", (world, generation, process_index, stage), deadline, world)
            if answer["done"]:
                return
            if deadline.is_over(clock.monotonic()):
                raise JoinTimeoutError(world, _missing(answer), timeout_s, f"get {stage}")
            _say(progress, f"world {world!r}: waiting for {_missing(answer)} to be {stage}")

    def barrier(
        self,
        world: str,
        generation: int,
        process_index: int,
        name: str,
        sequence: int,
        *,
        timeout_s: float,
        progress: Progress | None = None,
    ) -> None:
        """Return when all processes have come to barrier ``name`` for the ``sequence``-th time (1, 2, …).

        A process that gives up has not passed: it comes with the same sequence again.

        Raises:
            BarrierTimeoutError: some did not come in time; it names them.
            WorldFailedError: they never will.
        """
        deadline = Deadline.after(timeout_s, now=clock.monotonic())
        while True:
            answer = self._poll("barrier", (world, generation, process_index, name, sequence), deadline, world)
            if answer["done"]:
                return
            if deadline.is_over(clock.monotonic()):
                raise BarrierTimeoutError(name, _missing(answer), timeout_s)
            _say(progress, f"barrier {name!r}: waiting for {_missing(answer)}")

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
        """Tell that a process is gone; unless it had left, its world fails."""
        self._ask("died", (world, generation, process_index, cause, code), timeout_s)

    def watch(self, version: int, *, wait_s: float = POLL_S) -> Answer:
        """Return a summary of all worlds when it is no longer that of ``version``, or after ``wait_s`` (30 at most)."""
        return self._ask("watch", (version, wait_s), wait_s + ANSWER_S)

    def _poll(self, method: str, args: Sequence[Any], deadline: Deadline, world: str) -> Answer:
        remaining_s = deadline.remaining_s(clock.monotonic())
        index = args[0]["process_index"] if method == "join" else args[2]
        wait_s = min(poll_s(index, deadline.timeout_s - remaining_s), remaining_s)
        answer = self._ask(method, (*args, wait_s), wait_s + ANSWER_S)
        if answer.get("failure_error"):
            raise error_of(answer["failure_error"])
        if answer.get("failure") is not None:
            raise WorldFailedError(world, int(answer["failed_generation"]), str(answer["failure"]))
        return answer

    def _ask(self, method: str, args: Sequence[Any], timeout_s: float) -> Answer:
        return ask(self.handle, self._call, method, args, timeout_s)


def _join_answer(answer: Answer) -> JoinAnswer:
    ids = answer["local_device_ids"]
    fields = {name: answer[name] for name in JoinAnswer.__dataclass_fields__}
    return JoinAnswer(**fields | {"local_device_ids": None if ids is None else tuple(ids)})


def _speaks(answer: Answer, process_index: int) -> bool:
    """Tell whether this process is the first of those that wait: one line is enough for all."""
    missing = {entry["process_index"] for entry in answer["missing"]}
    return next((index for index in range(process_index) if index not in missing), process_index) == process_index


def _missing(answer: Answer) -> str:
    return name_missing(answer["missing"], answer["missing_count"])


def _say(progress: Progress | None, text: str) -> None:
    if progress is not None:
        progress(text)
