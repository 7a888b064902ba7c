"""Bring JAX up as the coordinator planned it, and check what it became."""

import socket
import sys
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

from eray._core.naming import host_port
from eray._core.timing import Backoff, Deadline
from eray._core.tracks import Recorder
from eray._core.verdict import Expected, first_difference
from eray._io import clock, net
from eray._io.devices import read_hardware
from eray.errors import ConfigurationError, JaxMismatchError, JoinTimeoutError

if TYPE_CHECKING:
    from eray._ray.client import CoordinatorClient, JoinAnswer

JAX_LATER_S = 30.0
"""How much later than ours JAX's own deadline is: it aborts the process, in words that name nobody (FACTS J1)."""
DIAL_S = 60.0


@dataclass(frozen=True)
class Start:
    """What the start of JAX in one process needs to know.

    ``asked_devices`` is what --devices-per-process asked for. ``progress`` takes what is awaited, None where somebody
    else tells that.
    """

    world: str
    node: str
    address: str
    in_step: bool
    asked_devices: int | None
    environ: MutableMapping[str, str]
    say: Callable[[str], None]
    progress: Callable[[str], None] | None


class JaxStart:
    """JAX in this process, from its import to its end. Nothing of JAX is loaded before it is made."""

    def __init__(self, environ: MutableMapping[str, str], spans: Recorder) -> None:
        """Begin to import JAX beside everything else; ``spans`` takes what the start is spent on.

        Raises:
            JaxStateError: the program started JAX, or touched a backend, before.
            ConfigurationError: this Python has no JAX.
        """
        from eray._jax import runtime

        self._runtime = runtime
        runtime.set_defaults(environ)
        if "jax" in sys.modules:
            runtime.require_untouched()
        elif find_spec("jax") is None:
            raise ConfigurationError(
                f"{sys.executable}, which runs this process, has no jax; install it there (`{sys.executable} -m pip "
                "install jax`), run the program by the Python that has it, or call connect(jax=False)"
            )
        self._started = False
        self._spans = spans
        self._loading = runtime.JaxImport(spans)

    def load(self) -> None:
        """Wait until JAX is imported, and raise what that raised."""
        self._loading.wait()

    def run(self, start: Start, client: "CoordinatorClient", answer: "JoinAnswer", deadline: Deadline) -> str:
        """Start ``jax.distributed``, and return the address of its coordination service when JAX is as planned.

        Raises:
            JaxMismatchError: it is not; the world has failed by that.
            JoinTimeoutError: process 0 does not answer.
        """
        runtime = self._runtime
        if answer.device_rule == "none" and start.in_step:
            self._keep_off_accelerators(start)
        reserved = None
        if answer.process_index == 0:
            with self._spans.during("port"):
                reserved = runtime.reserve_port()
            address = host_port(start.address, reserved.getsockname()[1])
            with self._spans.during("publish"):
                client.publish(start.world, answer.generation, answer.process_index, address)
        else:
            address = self._dialled_address(start, client, answer, deadline)
        self._started = True
        with self._spans.during("initialise"):
            runtime.initialize(
                coordinator_address=address,
                process_count=answer.process_count,
                process_index=answer.process_index,
                local_device_ids=answer.local_device_ids,
                timeout_s=deadline.remaining_s(clock.monotonic()) + JAX_LATER_S,
                bind_ipv4=reserved is not None and reserved.family == socket.AF_INET,
                environ=start.environ,
                proxies_off=net.without_proxies(start.environ, [address.rpartition(":")[0].strip("[]")]),
            )
        if reserved is not None:
            reserved.close()
        with self._spans.during("check"):
            self._check(start, client, answer)
        return address

    def shutdown(self) -> None:
        """Disconnect from JAX's service, or end it in process 0; nothing where JAX was not started."""
        if self._started:
            self._runtime.shutdown()

    def _dialled_address(
        self, start: Start, client: "CoordinatorClient", answer: "JoinAnswer", deadline: Deadline
    ) -> str:
        remaining_s = deadline.remaining_s(clock.monotonic())
        with self._spans.during("address"):
            address = client.await_address(
                start.world, answer.generation, answer.process_index, timeout_s=remaining_s, progress=start.progress
            )
        with self._spans.during("dial"):
            dial(address, start.world, Deadline.after(min(remaining_s, DIAL_S), now=clock.monotonic()))
        return address

    def _check(self, start: Start, client: "CoordinatorClient", answer: "JoinAnswer") -> None:
        expected = Expected(
            process_count=answer.process_count,
            process_index=answer.process_index,
            local_device_ids=answer.local_device_ids,
            device_count=start.asked_devices,
            platforms=self._runtime.platforms_setting(),
        )
        found = first_difference(expected, self._runtime.observe())
        if found is None:
            return
        error = JaxMismatchError(
            start.world, answer.process_index, start.node, found.what, found.planned, found.found, found.remedy
        )
        if answer.process_index != 0:
            self.shutdown()  # process 0 leaves at the news, and a client of JAX's that is cut off aborts
        client.report(start.world, answer.generation, answer.process_index, "failed", str(error))
        raise error

    def _keep_off_accelerators(self, start: Start) -> None:
        count = read_hardware().count
        if count:
            start.say(
                f"Slurm allotted no accelerator to this step, so the {count} that can be seen are left alone; ask for "
                "some (`--gpus-per-node`), or set ERAY_DEVICES=all where the site does not manage them"
            )
        if not start.environ.get("JAX_PLATFORMS"):
            self._runtime.use_cpu_only()


def all_running(
    client: "CoordinatorClient",
    world: str,
    answer: "JoinAnswer",
    deadline: Deadline,
    progress: Callable[[str], None] | None,
) -> None:
    """Report that this process runs, and return when all processes of its world do.

    Raises:
        JoinTimeoutError, WorldFailedError: they never will.
    """
    place = (world, answer.generation, answer.process_index)
    client.report(*place, "running")
    client.await_stage(*place, "running", timeout_s=deadline.remaining_s(clock.monotonic()), progress=progress)


def dial(address: str, world: str, deadline: Deadline) -> None:
    """Wait until process 0's service answers: JAX's own client would back off for a second (FACTS J13)."""
    host, _, port = address.rpartition(":")
    backoff, attempt = Backoff(first_s=0.01, limit_s=0.2), 0
    while not net.port_is_open(host.strip("[]"), int(port), 2.0):
        now = clock.monotonic()
        if deadline.is_over(now):
            raise JoinTimeoutError(world, f"process 0 at {address}", deadline.timeout_s, "answer on its port")
        clock.sleep(backoff.pause_s(attempt, deadline, now))
        attempt += 1
