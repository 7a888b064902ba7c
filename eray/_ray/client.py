"""The coordinator as calls of the processes of a world, each with a deadline.

What the coordinator refuses, and the failure of a world, are raised as errors of eray; every call may also raise
ClusterLostError.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eray._core.missing import name_missing
from eray._core.timing import Deadline, poll_s
from eray._io import clock
from eray._ray.asking import Answer
from eray._ray.cluster_client import ANSWER_S, ClusterClient, Progress, reminding
from eray.errors import BarrierTimeoutError, ErayError, JoinTimeoutError, WorldFailedError, error_of

if TYPE_CHECKING:
    from eray._core.topology import Topology

FOLLOW_S, FOLLOW_ANSWER_S = 30.0, 60.0
"""A follower is in no hurry: that its answer is late is no reason to end a process."""


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


@dataclass(frozen=True)
class SavePoint:
    """All processes of a world save at their first step after ``after``, None: at the very first."""

    after: int | None


class CoordinatorClient(ClusterClient):
    """Asks for one process of a world, which may ask all that the others may."""

    def join(self, request: Mapping[str, Any], *, timeout_s: float, progress: Progress | None = None) -> JoinAnswer:
        """Return this process's place when all processes of its world have joined.

        Raises:
            JoinTimeoutError: some did not come in time; it names them.
            WorldFailedError, DevicePlanError, WorldContradictionError: the world failed.
            DuplicateProcessError, StaleGenerationError: this process is not wanted.
        """
        world = str(request["world"])
        deadline, tell = Deadline.after(timeout_s, now=clock.monotonic()), reminding(progress)
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
                tell(f"world {world!r}: waiting for {missing} to {stage}")

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
        deadline, tell = Deadline.after(timeout_s, now=clock.monotonic()), reminding(progress)
        while True:
            answer = self._poll("await_address", (world, generation, process_index), deadline, world)
            if answer["done"]:
                return str(answer["coordinator_address"])
            if deadline.is_over(clock.monotonic()):
                raise JoinTimeoutError(world, _missing(answer), timeout_s, "publish the coordinator's address")
            tell(f"world {world!r}: waiting for {_missing(answer)} to publish the coordinator's address")

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
        deadline, tell = Deadline.after(timeout_s, now=clock.monotonic()), reminding(progress)
        while True:
            answer = self._poll("await_stage", (world, generation, process_index, stage), deadline, world)
            if answer["done"]:
                return
            if deadline.is_over(clock.monotonic()):
                raise JoinTimeoutError(world, _missing(answer), timeout_s, f"get {stage}")
            tell(f"world {world!r}: waiting for {_missing(answer)} to be {stage}")

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
        deadline, tell = Deadline.after(timeout_s, now=clock.monotonic()), reminding(progress)
        while True:
            answer = self._poll("barrier", (world, generation, process_index, name, sequence), deadline, world)
            if answer["done"]:
                return
            if deadline.is_over(clock.monotonic()):
                raise BarrierTimeoutError(name, _missing(answer), timeout_s)
            tell(f"barrier {name!r}: waiting for {_missing(answer)}")

    def agree_to_save(
        self, world: str, generation: int, process_index: int, last_step: int | None, *, timeout_s: float
    ) -> SavePoint | None:
        """Tell the last step that this process passed, and return after which one all of them save.

        None where a process has left, so that there is no step for all.

        Raises:
            JoinTimeoutError: one waited in vain for another; no process saves then.
            WorldFailedError: the world failed meanwhile.
        """
        deadline = Deadline.after(timeout_s, now=clock.monotonic())
        answer: Answer = {"done": False}
        while not answer["done"]:
            answer = self._poll("tell_step", (world, generation, process_index, last_step), deadline, world)
            if not answer["done"] and deadline.is_over(clock.monotonic()):
                answer = self._ask("give_up_saving", (world, generation, process_index), ANSWER_S)
        if answer["given_up"]:
            raise JoinTimeoutError(world, _missing(answer), timeout_s, "tell its step")
        return SavePoint(answer["after"]) if answer["saves"] else None

    def topology_of(self, warned: str | None) -> "Topology":
        """Return the cluster, never without the preemption of which this process was ``warned``.

        Its node may have told it before the coordinator heard.
        """
        found = self.topology()
        if warned is None or found.preemption is not None:
            return found
        self.warn(warned)
        return self.topology()

    def note(self, track: Mapping[str, Any], now: float) -> None:
        """Tell what the start of this process was spent on; ``now`` is the unix time on the clock of its spans."""
        self._ask("note", (dict(track), now), ANSWER_S)

    def follow(self, world: str, generation: int, process_index: int, *, warned: bool) -> str | None:
        """Return why the job is about to end as soon as that is known, None when there is nothing new for a while.

        ``warned`` tells that this process knows of the preemption, and only waits for a failure.

        Raises:
            WorldFailedError: the world has failed.
        """
        answer = self._ask("follow", (world, generation, process_index, warned), FOLLOW_S + FOLLOW_ANSWER_S, FOLLOW_S)
        _raise_failure(answer, world)
        return str(answer["preemption"]["reason"]) if answer["done"] else None

    def _poll(self, method: str, args: Sequence[Any], deadline: Deadline, world: str) -> Answer:
        remaining_s = deadline.remaining_s(clock.monotonic())
        index = args[0]["process_index"] if method == "join" else args[2]
        wait_s = min(poll_s(index, deadline.timeout_s - remaining_s), remaining_s)
        answer = self._ask(method, args, wait_s + ANSWER_S, wait_s)
        _raise_failure(answer, world)
        return answer


def _raise_failure(answer: Answer, world: str) -> None:
    error: ErayError | None = None
    if answer.get("failure_error"):
        error = error_of(answer["failure_error"])
    elif answer.get("failure") is not None:
        error = WorldFailedError(world, int(answer["failed_generation"]), str(answer["failure"]))
    if error is not None:
        error.is_heard = True
        raise error


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
