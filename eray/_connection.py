"""What ``connect()`` returns: one process's membership in its world."""

import logging
import os
import sys
import threading
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING

from eray._core.membership import Fact, Membership
from eray._io import clock
from eray._io.link import Link
from eray._io.log_lines import log_change
from eray._preemption import Preemption
from eray._ray.notices import say
from eray.errors import ClusterLostError, ConnectionStateError, ErayError, WorldFailedError

if TYPE_CHECKING:
    from eray._core.topology import Node, Topology
    from eray._ray.client import CoordinatorClient

logger = logging.getLogger(__name__)

REPORT_S, ECHO_S = 5.0, 2.0
"""How long process 0, which serves JAX, waits until the others have heard of its failure."""


class Connection:
    """Membership of this process in a world, from ``connect()`` to ``close()``.

    Attributes:
        world, generation, process_index, process_count: its name, which of its lives this is, and this process's place.
        local_device_ids: ordinals in this process's visible list, None where it has no accelerator; ``device_rule`` is
            the rule that decided them (docs: GPUs and Slurm).
        coordinator_address: host:port of JAX's coordination service, None with ``jax=False``.
    """

    def __init__(
        self,
        membership: Membership,
        client: "CoordinatorClient",
        link: Link | None,
        *,
        shutdown_jax: Callable[[], None],
        detach_ray: Callable[[], None],
        preemption: Preemption,
    ) -> None:
        self._about, self._client, self._link = membership, client, link
        self._pid = os.getpid()
        self._closed = self._ending = False
        self._closing, self._echo = threading.Lock(), threading.Event()
        self._failure: str | None = None
        self._passes: dict[str, int] = {}
        self.beside: CoordinatorClient | None = None  # who asks the coordinator in a thread
        self._shutdown_jax, self._detach_ray, self._preemption = shutdown_jax, detach_ray, preemption

    world = Fact(lambda about: about.world)
    generation = Fact(lambda about: about.generation)
    process_index = Fact(lambda about: about.process_index)
    process_count = Fact(lambda about: about.process_count)
    local_device_ids = Fact(lambda about: about.local_device_ids)
    device_rule = Fact(lambda about: about.device_rule)
    coordinator_address = Fact(lambda about: about.coordinator_address)

    @property
    def is_open(self) -> bool:
        """Whether this process is a member: it has not left, and the connection is not a fork's copy."""
        return not self._closed

    @property
    def node(self) -> "Node":
        """This process's node."""
        from eray._core.topology import Node

        return Node.model_validate(self._about.node)

    def topology(self) -> "Topology":
        """Return the cluster as the coordinator sees it now.

        Raises:
            ClusterLostError: the coordinator does not answer.
        """
        self._require_open()
        return self._client.topology_of(self._preemption.reason)

    def barrier(self, name: str, timeout_s: float = 300.0) -> None:
        """Wait until every process of the world has come to the barrier ``name``; it may be used again.

        Raises:
            BarrierTimeoutError: some did not within ``timeout_s`` seconds; it names them with their nodes.
            WorldFailedError: a process failed.
        """
        self._require_open()
        about, sequence = self._about, self._passes.get(name, 0) + 1
        self._client.barrier(about.world, about.generation, about.process_index, name, sequence, timeout_s=timeout_s)
        self._passes[name] = sequence

    def preemption_notice(self) -> bool:
        """Tell whether the job is about to end: a warning of Slurm's came to any process or node of the cluster."""
        return self._preemption.reason is not None

    def should_save(self, step: int) -> bool:
        """Pass a step, and tell whether to save now: once after a preemption notice, at one step in all processes.

        Call it in every process with the same steps. It waits only while the processes settle which step it is.

        Raises:
            UsageError: ``step`` is no whole number, or lower than before.
        """
        self._require_open()
        return self._preemption.should_save(step)

    def notify_preemption(self, reason: str = "a notice") -> None:
        """Tell all processes of the cluster that the job is about to end; a signal handler may call it."""
        self._preemption.notify(reason)

    def close(self) -> None:
        """Leave the world: shut JAX down, report it, and detach from Ray. A second call does nothing.

        JAX's process 0 and, where Slurm ends a step with its first node, that node's processes stay until all have
        left, ERAY_DRAIN_TIMEOUT_S at most.
        """
        if not self._begin_close():
            return
        about = self._about
        try:
            if self._failure is None:
                if about.process_index != 0:
                    self._shutdown_jax()  # before process 0 ends the service: a client that is cut off aborts
                self._report("left")
                if about.stays_until_all_left and about.process_count > 1:
                    self._await_others()
                if about.process_index == 0:
                    self._shutdown_jax()
        finally:
            self._hang_up()

    def fail(self, cause: str) -> None:
        """Leave because this process failed: the world ends, and the others hear the cause."""
        if not self._begin_close():
            return
        about = self._about
        try:
            if about.alone or about.process_index != 0:
                self._shutdown_jax()  # the others leave at the news, process 0 too: a client cut off aborts
        finally:
            if self._failure is None:
                self._report("failed", cause)
                if about.process_index == 0 and not about.alone:
                    self._echo.wait(ECHO_S)
            self._hang_up(None if about.alone else f"{about.name}: {cause}")

    def resign(self, cause: str) -> None:
        """Report that this process failed, and do no more: the launcher that hears of it ends all processes."""
        if self._begin_close() and self._failure is None:
            self._report("failed", cause)

    def __enter__(self) -> "Connection":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None or (isinstance(error, SystemExit) and not error.code):
            self.close()
        else:
            self.fail(describe(error))

    def __repr__(self) -> str:
        return f"<eray.Connection {self._about.words}>"

    def on_failed(self, cause: str, code: int, *, said: bool = False) -> None:
        """Take the news that the world or the cluster failed: end this process, or mark it where it is alone.

        ``said`` tells that the cause stands on this process's stderr already.
        """
        self._echo.set()
        if self._closed or self._pid != os.getpid():
            return
        self._failure = cause
        self._preemption.close()
        if self._about.alone:
            logger.error("%s", cause)
            return
        self._ending = True
        if not said:
            say(f"process {self._about.process_index} leaves: {cause}")
        sys.stdout.flush()
        if self._link is not None:
            self._link.leave()
        os._exit(code)

    def on_lost(self) -> None:
        """Take the news that this node's supervisor is gone."""
        lost = ClusterLostError(self._about.ids["node"], "its supervisor is gone", "see its last messages")
        self.on_failed(str(lost), ClusterLostError.exit_code)

    def abandon(self) -> None:
        """Forget the connection in a fork: the parent is the member."""
        self._closed = True
        if self._link is not None:
            self._link.abandon()

    def _begin_close(self) -> bool:
        while self._ending and self._pid == os.getpid():  # another thread ends this process, with the code that counts
            clock.sleep(1.0)
        with self._closing:
            if self._closed or self._pid != os.getpid():
                return False
            self._closed = True
        self._preemption.close()  # before Ray is detached
        return True

    def _report(self, stage: str, detail: str = "") -> None:
        about = self._about
        log_change(logger, f"process-{stage}", **about.ids, cause=detail or None)
        try:
            self._client.report(about.world, about.generation, about.process_index, stage, detail, timeout_s=REPORT_S)
        except ErayError as exc:
            logger.warning("the coordinator was not told that process %s %s: %s", about.process_index, stage, exc)

    def _await_others(self) -> None:
        about = self._about
        try:
            self._client.await_stage(*about.place, "left", timeout_s=about.drain_timeout_s, progress=say)
        except ErayError as exc:
            logger.warning("process %s leaves before all others: %s", about.process_index, exc)

    def _hang_up(self, failure: str | None = None) -> None:
        self._detach_ray()
        if self._link is not None and failure is not None:
            self._link.leave_failed(failure, WorldFailedError.exit_code)
        elif self._link is not None:
            self._link.leave()

    def _require_open(self) -> None:
        if self._pid != os.getpid():
            raise ConnectionStateError("this process is a fork of a connected one and no member of the world")
        if self._closed:
            raise ConnectionStateError("the connection is closed")
        if self._failure is not None:
            raise WorldFailedError(self._about.world, self._about.generation, self._failure)


def describe(error: BaseException) -> str:
    """Return a failure of this process as the other processes will read it after its name."""
    what = f"exits with {error.code!r}" if isinstance(error, SystemExit) else f"raised {type(error).__name__}: {error}"
    return f"{what[:500]} (pid {os.getpid()})"
