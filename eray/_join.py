"""The steps of one join, in order: reach the cluster, take a place, start JAX, check it."""

import os
import secrets
import socket
import sys
from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eray._connection import Connection, Membership
from eray._core.timing import Backoff, Deadline
from eray._core.verdict import Expected, first_difference
from eray._identity import Identity, identify, read_site
from eray._io import clock, net
from eray._io.devices import read_hardware
from eray._io.link import Link
from eray._reach import await_ready, reach
from eray.errors import ClusterLostError, ErayError, JaxMismatchError, JoinTimeoutError

if TYPE_CHECKING:
    from eray._ray.client import CoordinatorClient, JoinAnswer

JAX_START_S = 60.0


@dataclass(frozen=True)
class Access:
    """How this process reaches its cluster, and which node it is on."""

    gcs_address: str
    node: dict[str, Any]
    place: dict[str, int]
    purpose: str
    link: Link | None


class Join:
    """One call of ``connect()``."""

    def __init__(self, environ: MutableMapping[str, str], *, with_jax: bool, timeout_s: float | None) -> None:
        self._environ, self._with_jax = environ, with_jax
        self._site = read_site(environ)
        settings = self._site.settings
        self._cluster_timeout_s = timeout_s or settings.cluster_timeout_s
        self._join_timeout_s = timeout_s or settings.join_timeout_s
        self._loading: Any = None
        self._failure: tuple[str, int] | None = None
        self._connection: Connection | None = None
        self._alone = False

    def run(self, *, world: str | None, process_count: int | None, process_index: int | None) -> Connection:
        """Join, and return the connection."""
        from eray._ray import attach

        attached = attach.current_address()
        identity = identify(
            self._site, world=world, process_count=process_count, process_index=process_index, attached=bool(attached)
        )
        self._alone = identity.process_count == 1
        if identity.notice:
            _say(identity.notice)
        self._start_jax_import()
        access = self._foreign_ray(identity) if identity.ray_address is not None else self._supervised(identity)
        try:
            return self._take_part(identity, access, owns_ray=attached is None)
        except ErayError:
            if access.link is not None and not self._alone:
                raise
            self._give_up(access, owns_ray=attached is None)
            raise

    def _start_jax_import(self) -> None:
        if not self._with_jax:
            return
        from eray._jax import runtime

        runtime.set_defaults(self._environ)
        if "jax" in sys.modules:
            runtime.require_untouched()
        self._loading = runtime.JaxImport()

    def _supervised(self, identity: Identity) -> Access:
        from eray._ray import attach
        from eray._ray.commands import auth_variables

        if identity.spec is not None:
            spec = identity.spec()
            node, link = spec.node, reach(spec, self._environ, None, self._cluster_timeout_s)
        else:
            assert identity.socket_path is not None
            node = self._site.slurm.node_name or socket.gethostname()
            link = _open(identity.socket_path, node)
        link.send({"type": "hello", "world": identity.world, "process_index": identity.process_index})
        welcome, ready = await_ready(link, node, self._cluster_timeout_s, _say)
        link.watch(self._on_message, self._on_lost)
        self._environ.update(auth_variables(ready["auth"], ready["token_path"]))
        self._environ["RAY_ENABLE_UV_RUN_RUNTIME_ENV"] = "0"
        attach.attach(ready["gcs_address"], node=node)
        return Access(ready["gcs_address"], ready["node"], welcome["place"], welcome["purpose"], link)

    def _foreign_ray(self, identity: Identity) -> Access:
        from eray._ray import foreign

        address, node = foreign.attach(identity.ray_address or None)
        return Access(address, node, {}, "foreign", None)

    def _take_part(self, identity: Identity, access: Access, *, owns_ray: bool) -> Connection:
        from eray._ray import attach
        from eray._ray.client import CoordinatorClient, find_coordinator

        node = str(access.node["name"])
        handle = find_coordinator()
        if handle is None:
            raise ClusterLostError(node, "the cluster has no coordinator", "see the log of eray on the head node")
        client = CoordinatorClient(handle)
        deadline = Deadline.after(self._join_timeout_s, now=clock.monotonic())
        answer = client.join(self._request(identity, access), timeout_s=self._join_timeout_s, progress=_say)
        if access.link is not None:
            member = {"world": identity.world, "generation": answer.generation, "process_index": answer.process_index}
            access.link.send({"type": "member", **member})
        address = self._start(client, identity.world, answer, access, deadline)
        connection = Connection(
            Membership(
                world=identity.world,
                generation=answer.generation,
                process_index=answer.process_index,
                process_count=answer.process_count,
                local_device_ids=answer.local_device_ids,
                device_rule=answer.device_rule,
                coordinator_address=address,
                node=access.node,
                stays_until_all_left=answer.process_index == 0 or _is_on_head(access),
                drain_timeout_s=self._site.settings.drain_timeout_s,
                alone=self._alone,
                owns_ray=owns_ray,
            ),
            client,
            access.link,
            shutdown_jax=_shutdown_jax if self._with_jax else _nothing,
            detach_ray=attach.detach,
        )
        self._connection = connection
        if self._failure is not None:
            connection.on_failed(*self._failure)
        return connection

    def _request(self, identity: Identity, access: Access) -> dict[str, Any]:
        site, hardware = self._site, read_hardware()
        settings, slurm = site.settings, site.slurm
        in_step = slurm.task is not None
        visible = slurm.visible
        facts = {
            "node": access.node["name"],
            "node_rank": access.node.get("node_rank"),
            "hostname": socket.gethostname(),
            "local_index": access.place.get("local_index", identity.local_index),
            "local_count": access.place.get("local_count", identity.local_count),
            "pid": os.getpid(),
            "visible": visible,
            "uuids": hardware.uuids if visible and hardware.uuids and len(visible) == hardware.count else None,
            "gpus_on_node": slurm.gpus_on_node,
            "hardware_count": hardware.count,
            "in_step": in_step,
            "override": settings.devices,
            "expected_devices": settings.devices_per_process,
        }
        return {
            "world": identity.world,
            "generation": identity.generation,
            "process_index": identity.process_index,
            "process_count": identity.process_count,
            "join_id": secrets.token_hex(8),
            "facts": facts,
        }

    def _start(
        self, client: "CoordinatorClient", world: str, answer: "JoinAnswer", access: Access, deadline: Deadline
    ) -> str | None:
        """Bring JAX up in all processes, and return only when it is as planned in every one."""
        generation, index = answer.generation, answer.process_index
        address = None
        if self._with_jax:
            self._loading.wait()
            address = self._start_jax(client, world, answer, access, deadline)
        client.report(world, generation, index, "running")
        remaining_s = deadline.remaining_s(clock.monotonic())
        client.await_stage(world, generation, index, "running", timeout_s=remaining_s, progress=_say)
        return address

    def _start_jax(
        self, client: "CoordinatorClient", world: str, answer: "JoinAnswer", access: Access, deadline: Deadline
    ) -> str:
        from eray._jax import runtime

        generation, index, node = answer.generation, answer.process_index, str(access.node["name"])
        if answer.device_rule == "none" and self._site.slurm.task is not None:
            self._keep_off_accelerators(runtime)
        reserved = None
        if index == 0:
            reserved = runtime.reserve_port()
            address = _host_port(str(access.node["address"]), reserved.getsockname()[1])
            client.publish(world, generation, index, address)
        else:
            remaining_s = deadline.remaining_s(clock.monotonic())
            address = client.await_address(world, generation, index, timeout_s=remaining_s, progress=_say)
            _dial(address, world, deadline)
        host = address.rpartition(":")[0].strip("[]")
        runtime.initialize(
            coordinator_address=address,
            process_count=answer.process_count,
            process_index=index,
            local_device_ids=answer.local_device_ids,
            timeout_s=min(deadline.remaining_s(clock.monotonic()), JAX_START_S),
            bind_ipv4=reserved is not None and reserved.family == socket.AF_INET,
            environ=self._environ,
            proxies_off=net.without_proxies(self._environ, [host]),
        )
        if reserved is not None:
            reserved.close()
        expected = Expected(
            process_count=answer.process_count,
            process_index=index,
            local_device_ids=answer.local_device_ids,
            device_count=self._site.settings.devices_per_process,
            platforms=runtime.platforms_setting(),
        )
        difference = first_difference(expected, runtime.observe())
        if difference is not None:
            error = JaxMismatchError(world, index, node, difference.what, difference.planned, difference.found)
            client.report(world, generation, index, "failed", str(error))
            raise error
        return address

    def _keep_off_accelerators(self, runtime: Any) -> None:
        count = read_hardware().count
        if count:
            _say(
                f"Slurm allotted no accelerator to this step, so the {count} that can be seen are left alone; ask for "
                "some (`--gpus-per-node`), or set ERAY_DEVICES=all where the site does not manage them"
            )
        if not self._environ.get("JAX_PLATFORMS"):
            runtime.use_cpu_only()

    def _on_message(self, message: dict[str, Any]) -> None:
        if message["type"] == "progress":
            _say(str(message["text"]))
        elif message["type"] == "bye" and self._connection is not None:
            self._connection.on_bye(bool(message["last"]))
        elif message["type"] == "failed":
            self._fail(str(message["cause"]), int(message["code"]))

    def _on_lost(self) -> None:
        if self._connection is not None:
            self._connection.on_lost()
        else:
            self._fail("this node's supervisor is gone", ClusterLostError.exit_code)

    def _fail(self, cause: str, code: int) -> None:
        if self._connection is not None:
            self._connection.on_failed(cause, code)
            return
        self._failure = cause, code
        if not self._alone:  # JAX's start cannot be interrupted otherwise (FACTS J1)
            _say(f"this process leaves: {cause}")
            sys.stdout.flush()
            os._exit(code)

    def _give_up(self, access: Access, *, owns_ray: bool) -> None:
        from eray._ray import attach

        if owns_ray:
            attach.detach()
        if access.link is not None:
            access.link.close()


def _open(path: str, node: str) -> Link:
    try:
        return Link.open(path, node)
    except OSError as exc:
        raise ClusterLostError(
            node, f"the supervisor that started this process does not answer ({exc.strerror})", "see its last messages"
        ) from exc


def _dial(address: str, world: str, deadline: Deadline) -> None:
    """Wait until process 0's service answers: JAX's own client would back off for a second (FACTS J13)."""
    host, _, port = address.rpartition(":")
    backoff, attempt = Backoff(first_s=0.01, limit_s=0.2), 0
    while not net.port_is_open(host.strip("[]"), int(port), 2.0):
        now = clock.monotonic()
        if deadline.is_over(now):
            raise JoinTimeoutError(world, f"process 0 at {address}", deadline.timeout_s, "answer on its port")
        clock.sleep(backoff.pause_s(attempt, deadline, now))
        attempt += 1


def _host_port(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _is_on_head(access: Access) -> bool:
    return access.purpose == "tasks" and access.node.get("node_rank") == 0


def _shutdown_jax() -> None:
    from eray._jax import runtime

    runtime.shutdown()


def _nothing() -> None:
    return None


def _say(text: str) -> None:
    print(f"eray: {text}", file=sys.stderr, flush=True)
