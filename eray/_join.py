"""The steps of one join, in order: who am I, reach the cluster, take a place, start JAX."""

import logging
import os
import sys
from collections.abc import Callable, MutableMapping
from typing import TYPE_CHECKING, Any

from eray._asking import Asking, by_line, by_ray
from eray._beside import serve_beside
from eray._bringup import Site
from eray._connection import Connection, describe
from eray._core.membership import Membership
from eray._core.naming import NAMESPACE
from eray._core.timing import Deadline
from eray._exit_hooks import is_interactive
from eray._facts import join_request
from eray._identity import Identity, identify
from eray._io import clock
from eray._io.link import Link
from eray._io.log_lines import host_of, log_change, log_program
from eray._preemption import Preemption
from eray._ray import attach
from eray._ray.noted import recorder, tell_notes
from eray._ray.notices import say
from eray._reach import HEAD_FIRST_S, Access, await_word, foreign_access, open_link, reach
from eray._start_jax import JaxStart, Start, all_running
from eray.errors import ClusterLostError, DuplicateProcessError, ErayError, JoinError, StaleGenerationError

if TYPE_CHECKING:
    from eray._ray.client import CoordinatorClient, JoinAnswer

logger = logging.getLogger(__name__)


class Join:
    """One call of ``connect()``. What the supervisor says meanwhile, and later, arrives here in a thread."""

    def __init__(
        self,
        environ: MutableMapping[str, str],
        site: Site,
        *,
        with_jax: bool,
        timeout_s: float | None = None,
        namespace: str = NAMESPACE,
    ) -> None:
        """``namespace`` is Ray's for this process, where it is not attached yet."""
        self._environ, self._site, self._with_jax, self._namespace = environ, site, with_jax, namespace
        settings = self._site.settings
        self._cluster_timeout_s = timeout_s or settings.cluster_timeout_s
        self._join_timeout_s = timeout_s or settings.join_timeout_s
        self._jax: JaxStart | None = None
        self._connection: Connection | None = None
        self._link: Link | None = None
        self._asking: Asking | None = None
        self.served_by: str | None = None  # the purpose of this process's supervisor: `eray run` tells of a failure
        self._progress: Callable[[str], None] | None = say
        self._who, self._index, self._owns_ray, self._alone, self._gave_up = "a process", 0, True, False, False
        self._preemption, self._spans = Preemption(), recorder("program")

    def run(self, *, world: str | None, process_count: int | None, process_index: int | None) -> Connection:
        """Join, and return the connection; after an error nothing of it is left."""
        log_program(self._environ, host_of(self._environ))
        attached = attach.current_address() is not None
        self._owns_ray = not attached
        with self._spans.during("environment"):
            identity = identify(
                self._site, world=world, process_count=process_count, process_index=process_index, attached=attached
            )
        self._alone = identity.process_count == 1 or is_interactive()
        self._index = identity.process_index
        self._who = f"process {identity.process_index} of world {identity.world!r}"
        if identity.notice:
            say(identity.notice)
        self._catch_warnings(is_supervised=identity.socket_path is not None)
        if self._with_jax:
            self._jax = JaxStart(self._environ, self._spans)
        try:
            if identity.ray_address is not None:
                access = foreign_access(identity.ray_address, self._namespace)
            else:
                access = self._supervised_access(identity)
            return self._take_part(identity, access)
        except BaseException as exc:
            self._give_up(exc)
            raise

    def _supervised_access(self, identity: Identity) -> Access:
        if identity.spec is not None:
            spec = identity.spec()
            with self._spans.during("supervisor"):
                node, link = spec.node, reach(spec, self._environ, identity.step_cpus, self._cluster_timeout_s)
        else:
            assert identity.socket_path is not None
            node = self._site.node
            link = open_link(identity.socket_path, node)
        self._link = link
        return self._hear(identity, link, node)

    def _hear(self, identity: Identity, link: Link, node: str) -> Access:
        from eray._ray.commands import driver_variables

        on_demand, imported_with = self._site.settings.attach == "demand", None
        link.send(identity.hello)
        deadline = Deadline.after(self._cluster_timeout_s + HEAD_FIRST_S, now=clock.monotonic())
        welcome = await_word(link, "welcome", node, deadline, say)
        self.served_by = str(welcome["purpose"])
        own = self.served_by == "run" and identity.world == self._site.settings.world
        if own and not logger.isEnabledFor(logging.INFO):
            self._progress = None  # `eray run` tells for whom its own world waits
        likely = driver_variables(welcome["auth"], welcome["token_path"])
        if not on_demand:
            with self._spans.during("import ray"):
                is_new = attach.load(self._environ, likely, has_dashboard=welcome["has_dashboard"])
                imported_with = likely if is_new else None
        with self._spans.during("ready"):
            ready = await_word(link, "ready", node, deadline, say)
        attach.adopt(self._environ, variables := driver_variables(ready["auth"], ready["token_path"]))

        def attach_ray() -> None:
            address, up_to_date = ready["gcs_address"], variables == imported_with
            attach.attach(address, node=node, namespace=self._namespace, up_to_date=up_to_date)

        self._asking = by_line(link, attach_ray, self._environ) if on_demand else None
        link.watch(self._on_message, self._on_lost)
        if not on_demand:
            with self._spans.during("attach"):
                attach_ray()
        stays = welcome["purpose"] == "tasks" and welcome["is_head"]
        return Access(ready["node"], welcome["place"], stays, link)

    def _take_part(self, identity: Identity, access: Access) -> Connection:
        asking = self._asking or by_ray(str(access.node["name"]))
        client = asking.client
        if self._jax is not None:
            self._jax.load()  # before the others wait for this process in JAX, which aborts at its own timeout
        deadline = Deadline.after(self._join_timeout_s, now=clock.monotonic())
        request = join_request(self._site, identity, access.node, access.place)
        if access.link is None:
            from eray._ray.actor_watch import watch_own_actor

            watch_own_actor(client.handle, request)
        tell_notes(access.link, self._spans, identity.world, identity.generation or 1, identity.process_index)
        with self._spans.during("join"):
            answer = client.join(request, timeout_s=self._join_timeout_s, progress=self._progress)
        member = {"world": identity.world, "generation": answer.generation, "process_index": answer.process_index}
        log_change(logger, "process-joined", **member, node=access.node["name"])
        if access.link is not None:
            access.link.send({"type": "member", **member})
        address = self._start(client, identity.world, answer, access, deadline)
        log_change(logger, "process-running", **member, node=access.node["name"])
        membership = Membership(
            world=identity.world,
            generation=answer.generation,
            process_index=answer.process_index,
            process_count=answer.process_count,
            local_device_ids=answer.local_device_ids,
            device_rule=answer.device_rule,
            coordinator_address=address,
            node=access.node | {"node_rank": answer.node_rank},
            stays_until_all_left=answer.process_index == 0 or access.outlives_others,
            drain_timeout_s=self._site.settings.drain_timeout_s,
            alone=self._alone,
        )
        self._connection = Connection(
            membership,
            client,
            access.link,
            shutdown_jax=self._jax.shutdown if self._jax is not None else lambda: None,
            detach_ray=attach.detach if self._owns_ray else lambda: None,
            preemption=self._preemption,
        )
        told = (access.link, asking, request, self._preemption, self._spans)
        self._connection.beside = serve_beside(membership, *told, self._connection.on_failed)
        return self._connection

    def _catch_warnings(self, *, is_supervised: bool) -> None:
        # SIGTERM to a process of `eray run` comes from its supervisor, which heeds a warning itself, and means the end.
        names = self._site.settings.preemption_signals
        if "TERM" in names:
            attach.take_out_sigterm_handler()  # it ends the program, and a supervisor passes a warning on to it
        self._preemption.catch(name for name in names if not (is_supervised and name == "TERM"))

    def _start(
        self, client: "CoordinatorClient", world: str, answer: "JoinAnswer", access: Access, deadline: Deadline
    ) -> str | None:
        """Bring JAX up in all processes, and return only when it is as planned in every one."""
        address = None
        if self._jax is not None:
            start = Start(
                world=world,
                node=str(access.node["name"]),
                address=str(access.node["address"]),
                in_step=self._site.slurm.task is not None,
                asked_devices=self._site.settings.devices_per_process,
                environ=self._environ,
                say=say,
                progress=self._progress,
            )
            address = self._jax.run(start, client, answer, deadline)
        with self._spans.during("all running"):
            all_running(client, world, answer, deadline, self._progress)
        return address

    def _give_up(self, error: BaseException) -> None:
        """Leave nothing of this join behind, and tell the others why."""
        self._gave_up = True
        self._preemption.close()
        if self._jax is not None and self._index != 0 and isinstance(error, ErayError):
            self._jax.shutdown()  # before process 0 ends JAX's service: a client that is cut off aborts
        if self._owns_ray:
            attach.detach()
        if self._link is None:
            return
        if self._alone or isinstance(error, DuplicateProcessError | StaleGenerationError):
            self._link.leave()  # the world is none the worse for it
        elif isinstance(error, ErayError):
            self._link.leave_failed(str(error), error.exit_code)
        else:
            self._link.leave_failed(f"{self._who}: {describe(error)}", JoinError.exit_code)

    def _on_message(self, message: dict[str, Any]) -> None:
        if message["type"] == "progress":
            say(str(message["text"]))
        elif message["type"] == "failed":
            self._fail(str(message["cause"]), int(message["code"]), said=self.served_by == "run")
        elif message["type"] == "preemption":
            self._preemption.take(str(message["reason"]))
        elif message["type"] == "answer" and self._asking is not None:
            self._asking.take(message)

    def _on_lost(self) -> None:
        if self._gave_up:
            return
        if self._connection is not None:
            self._connection.on_lost()
        else:
            self._fail("this node's supervisor is gone", ClusterLostError.exit_code)

    def _fail(self, cause: str, code: int, *, said: bool = False) -> None:
        if self._connection is not None:
            self._connection.on_failed(cause, code, said=said)
        elif not self._alone and not self._gave_up:  # JAX's start cannot be interrupted otherwise (FACTS J1)
            if not said:
                say(f"this process leaves: {cause}")
            sys.stdout.flush()
            if self._link is not None:
                self._link.leave()
            os._exit(code)
