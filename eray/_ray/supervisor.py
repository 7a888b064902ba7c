"""One node's supervisor: it owns a Ray node, the processes it starts and the line to each process of the node.

It carries out what the head tells it (``handle``) and says what happens here (``emit``). On the head itself the two are
plain calls, elsewhere messages over the beacon's channel.
"""

import asyncio
import logging
import signal
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any

from eray._core.naming import host_port
from eray._core.nodespec import NodeSpec
from eray._core.rollcall import NodeReport
from eray._core.tracks import Recorder
from eray._io import net, ports
from eray._io.log_lines import log_change
from eray._io.ward import Ward
from eray._ray import driver, home
from eray._ray.clients import PLACE, Client, Clients
from eray._ray.commands import start_command
from eray._ray.notices import fault, say
from eray._ray.ray_node import RayNode
from eray._ray.self_report import node_fields, node_report
from eray._ray.world_process import WorldProcesses
from eray.errors import ClusterLostError, ErayError, error_data

logger = logging.getLogger(__name__)

Message = Mapping[str, Any]
FIRST_CLIENT_S, CALLER_S = 60.0, 10.0
RAY_GRACE_S = 2.0
"""How long people's jobs and actors may take at the end of ``eray up``. When a world is over, nobody is waited for."""


class Supervisor:
    """This node's part of the cluster."""

    def __init__(
        self,
        spec: NodeSpec,
        environ: MutableMapping[str, str],
        ray_environ: Mapping[str, str],
        ward: Ward,
        spans: Recorder,
    ) -> None:
        self.spec, self.spans, self._ward = spec, spans, ward
        self.emit: Callable[[Message], None] = lambda message: None
        self.address = net.node_address(spec.alias or spec.node, spec.interface, len(spec.nodes) > 1)
        self.environ, self._ray_environ = environ, ray_environ
        self._ray: RayNode | None = None
        self._clients = Clients(
            spec.socket_path,
            welcome=self._welcome,
            left=self._client_left,
            failed=self._client_failed,
            gone=self._client_gone,
            told=lambda message: self.emit(message),
        )
        self._processes = WorldProcesses(spec, environ, lambda message: self.emit(message), ward.watch)
        self._ready: Message | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._stopping = self.has_caller = False  # caller: who started us here was told that we listen, and comes
        self._failure: Message | None = None
        self._preemption: Message | None = None
        self.idle: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def has_processes(self) -> bool:
        """Whether any process of this node is connected, or was started."""
        return bool(self._clients.connected or self._processes.count)

    def report(self) -> NodeReport:
        """Return what this node says at the roll-call."""
        return node_report(self.spec, self.address)

    def listen(self) -> None:
        """Open the socket for the node's processes. Where they start us, and none comes, we go again."""
        self._clients.start()
        if self.spec.purpose == "tasks":
            asyncio.get_running_loop().call_later(FIRST_CLIENT_S, self._tell_idle)

    def handle(self, message: Message) -> None:
        """Carry out what the head says."""
        kind = message["type"]
        if kind == "start-ray":
            self._spawn(self._run_ray(message["gcs_address"]))
        elif kind == "restart-ray":
            self._spawn(self._restart_ray(message["gcs_address"]))
        elif kind == "start-processes":
            self._spawn(self._processes.start(message["generation"], message["per_node"]))
        elif kind == "stop-processes":
            self._clients.broadcast({"type": "failed", "cause": message["cause"], "code": message["code"]})
            self._spawn(self._end_processes(message["generation"]))
        elif kind == "ready":
            self._set_ready(message)
        elif kind == "answers":
            self._clients.relay.answered(message)
        elif kind == "clock":
            self.emit({"type": "clock", "asked": message["asked"], "here": self.spans.now()})
        elif kind == "preemption":
            self._preemption = message
            self._clients.broadcast(message)
        elif kind in ("failed", "progress"):
            if kind == "failed":
                self._failure = self._failure or message
            self._clients.broadcast(message)

    def fail(self, error: ErayError) -> None:
        """Say that this node's part is over, to people and to the node's processes."""
        say(str(error))
        self.abandon(str(error), error.exit_code, error_data(error))

    def abandon(self, cause: str, code: int = ClusterLostError.exit_code, error: Message | None = None) -> None:
        """Say to the node's processes that its part is over."""
        self.handle({"type": "failed", "cause": cause, "code": code, "error": error})

    def forward(self, number: int) -> None:
        """Pass a signal on to the processes that we started and that catch it."""
        self._processes.pass_on(number)

    def warn(self, number: int) -> None:
        """Tell the head of a signal that says that the job is about to end."""
        self.emit({"type": "warned", "reason": f"{signal.Signals(number).name} at {self.spec.node}"})

    async def stop_processes(self) -> None:
        """End the processes that we started. From now on nothing that ends here is news, and nobody may come."""
        if self.has_caller and self._failure is not None and not self._stopping:
            await self._clients.first(CALLER_S)  # else it would see us gone, and not why
        self._stopping = True
        await self._clients.refuse()
        await self._clients.drain(1.0)
        await self._processes.stop(heard=self._failure is not None)

    async def stop(self) -> None:
        """End the processes, then Ray. The line to the node's processes is cut by our own end, when all is cleared."""
        await self.stop_processes()
        if self._ray is not None:
            await self._ray.stop(RAY_GRACE_S if self.spec.purpose == "up" else 0.0)
        for task in tuple(self._tasks):
            task.cancel()

    async def _run_ray(self, gcs_address: str | None) -> None:
        command = start_command(
            self.spec,
            self._ray_environ,
            address=self.address,
            gcs_address=gcs_address,
            object_store_bytes=home.object_store_bytes(self.spec),
            free_port=ports.free_port,
        )
        logger.info("starting Ray: %s", command)
        self._ray = RayNode(self.spec, command)
        self._ward.watch(self._ray.start())
        if gcs_address is None:
            with self.spans.during("gcs"):
                gcs_address = host_port(self.address, await self._ray.gcs_port(self.spec.cluster_timeout_s))
            log_change(logger, "gcs-up", node=self.spec.node, node_rank=self.spec.node_rank, gcs_address=gcs_address)
            self.emit({"type": "gcs", "gcs_address": gcs_address})
        with self.spans.during("raylet"):
            self._tell_spans()
            ray_node_id = await self._ray.ready(self.spec.cluster_timeout_s)
        self.spans.begin("ready")
        log_change(logger, "raylet-ready", node=self.spec.node, node_rank=self.spec.node_rank, ray_node_id=ray_node_id)
        node = node_fields(self.spec, self.address, self._ray.metrics_port()) | {"ray_node_id": ray_node_id}
        self.emit({"type": "ray-ready", "node": node})
        what = await self._ray.ended()
        if not self._stopping:
            self.emit({"type": "ray-lost", "reason": f"{what}, {self._ray.last_words()}"})

    async def _end_processes(self, generation: int) -> None:
        with self.spans.during("stop"):
            await self._processes.end(generation, self._clients.drain)
        self._tell_spans()

    async def _restart_ray(self, gcs_address: str) -> None:
        self._ready = None
        if self._ray is not None:
            await self._ray.stop(0.0)
        await asyncio.to_thread(home.renew, self.spec)
        await self._run_ray(gcs_address)

    def _set_ready(self, message: Message) -> None:
        own = {"token_path": self.spec.token_path, "auth": self.spec.auth, "dashboard": None}
        self._ready = own | {name: message[name] for name in ("type", "gcs_address", "node", *own) if name in message}
        self._clients.broadcast(self._ready)
        self.spans.end("ready")
        self._tell_spans()
        if self._preemption is not None:  # until it is ready a process takes no other news
            self._clients.broadcast(self._preemption)
        home.announce(self.spec, {name: self._ready[name] for name in home.ACCESS})

    def _welcome(self, client: Client) -> list[Message]:
        world = self._processes.world
        place = {} if world is None else world.place_of(client.hello.get("process_index"))
        if self._clients.seen == 1 and not self._stopping:  # one word a node, not a process
            about = {name: client.hello.get(name) for name in ("world", "process_count", "indexes_on_node")}
            self.emit({"type": "busy", **about})
        spec, has_dashboard = self.spec, self.spec.dashboard or driver.shared_cluster(self.spec) is not None
        welcome: dict[str, Any] = {"type": "welcome", "purpose": spec.purpose, "place": place, "auth": spec.auth}
        welcome |= {"is_head": not spec.node_rank, "token_path": spec.token_path, "has_dashboard": has_dashboard}
        return [each for each in (welcome, self._failure or self._ready, self._preemption) if each is not None]

    def _client_gone(self, client: Client) -> None:
        if self._stopping or self._processes.is_between:
            return
        if not client.left and not self._clients.has_other(client):
            place = client.place or (client.hello.get("world"), None, client.hello.get("process_index"))
            cause = f"process {place[2]} on {self.spec.node} (pid {client.pid}) died"
            log_change(logger, "process-died", **dict(zip(PLACE, place, strict=True)), node=self.spec.node, cause=cause)
            self.emit({"type": "died", "place": list(place), "cause": cause, "joined": client.place is not None})
        self._tell_idle()

    def _client_left(self, client: Client) -> None:
        # The last process of a node waits until all is cleared away: Slurm kills what outlives it (FACTS S15).
        # After a failure all of them wait, process 0 too: JAX ends the others as soon as that is gone (FACTS J7).
        self._part(client, self._clients.all_left or self._failure is not None)

    def _client_failed(self, client: Client, message: Message) -> None:
        about = {"process_index": client.hello.get("process_index"), "generation": self._processes.generation}
        about["cause"] = message["cause"]
        log_change(logger, "process-failed", world=client.hello.get("world"), node=self.spec.node, **about)
        self.emit({"type": "process-failed", "code": message["code"], **about})
        self._part(client, True)

    def _part(self, client: Client, last: bool) -> None:
        client.send({"type": "bye", "last": last and self.spec.purpose == "tasks"})
        self._tell_idle()

    def _tell_idle(self) -> None:
        is_due = self.spec.purpose == "tasks" and self._clients.all_left
        if is_due and not self._stopping and not self.idle.done():
            self.emit({"type": "idle"})
            self.idle.set_result(None)

    def _tell_spans(self) -> None:
        self.emit({"type": "spans", "spans": self.spans.rows()})

    def _spawn(self, coroutine: Any) -> None:
        task = asyncio.get_running_loop().create_task(self._guarded(coroutine))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _guarded(self, coroutine: Any) -> None:
        try:
            await coroutine
        except Exception as exc:  # the cluster ends by it, with words; unseen, all would wait for their deadline
            error = exc if isinstance(exc, ErayError) else fault(self.spec.node, exc)
            self.emit({"type": "error", "error": error_data(error)})
