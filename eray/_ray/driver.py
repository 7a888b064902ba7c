"""The head's own Ray driver: it creates the coordinator and speaks to it for the supervisors."""

import asyncio
import logging
import os
import platform
import threading
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from contextlib import suppress
from typing import Any

from eray._core.layout import task_layout
from eray._core.naming import COORDINATOR_NAME, NAMESPACE
from eray._core.nodespec import NODE_FILE, NodeSpec, WorldSpec
from eray._core.timing import Backoff
from eray._io import files, process
from eray._io.log_lines import host_of, log_change, log_settings
from eray._ray import job_home
from eray._ray.attach import adopt
from eray._ray.commands import driver_variables, export_lines
from eray.errors import ClusterLostError, DirectoryError, ErayError

logger = logging.getLogger(__name__)

SNAPSHOT_NAME = "coordinator.json"
WATCH_S = 20.0


class HeadDriver:
    """Blocking calls, made in threads; Ray is loaded with the first."""

    def __init__(
        self, spec: NodeSpec, environ: MutableMapping[str, str], attached: Callable[[], object] = lambda: None
    ) -> None:
        """``attached`` is called when Ray was initialised in this process."""
        self._spec, self._environ, self._attached = spec, environ, attached
        self._client: Any = None
        self._watching: Any = None  # the call that is out
        self._gcs_address = self._dashboard_url = ""
        self._nodes: dict[str, dict[str, Any]] = {}
        self._adopting = threading.Lock()
        self.shared = shared_cluster(spec)

    @property
    def dashboard(self) -> str | None:
        """Host and port of Ray's dashboard, which takes Ray Jobs; None where it does not run."""
        return self._dashboard_url or None

    @property
    def handle(self) -> Any | None:
        """The coordinator's handle, None before it is there and after this driver has left."""
        return None if self._client is None else self._client.handle

    def load(self) -> None:
        """Import Ray while its node starts, with this cluster's authentication."""
        token_path = self._spec.token_path if self.shared is None else self.shared["token_path"]
        adopt(self._environ, driver_variables(self._spec.auth, token_path), has_dashboard=self._spec.dashboard)
        logging.getLogger("ray").setLevel(logging.ERROR)  # it warns that it is used in a thread
        import ray  # noqa: F401

        import eray._ray.creation  # noqa: F401

    def create(self, gcs_address: str, node: Mapping[str, Any]) -> None:
        """Attach to the cluster, create the coordinator on the head, and declare the world that will be started."""
        from eray._ray import attach
        from eray._ray.client import CoordinatorClient
        from eray._ray.creation import create_coordinator

        self.load()
        self._gcs_address = gcs_address  # what Ray itself calls it may be another address of this machine
        self._dashboard_url = attach.attach(gcs_address, node=self._spec.node, log_to_driver=False, up_to_date=True)
        self._attached()
        spec = self._spec
        handle = create_coordinator(
            node_id=node.get("ray_node_id"),
            namespace=NAMESPACE,
            name=COORDINATOR_NAME,
            snapshot_path=f"{spec.run_dir}/{SNAPSHOT_NAME}",
            job=_job_fields(spec),
            log=(log_settings(self._environ), host_of(self._environ)),
            measured=spec.dashboard,
        )
        client = CoordinatorClient(handle)
        client.ping(timeout_s=spec.cluster_timeout_s)
        self._client = client
        if spec.world is not None:
            self.declare(1, spec.world)

    def shared_node(self, name: str) -> dict[str, Any]:
        """Return a node of the job's own cluster, after attaching to it.

        Raises:
            ClusterLostError: the node or the coordinator is not there.
        """
        from eray._ray import attach
        from eray._ray.calls import find_coordinator
        from eray._ray.client import CoordinatorClient

        with self._adopting:
            if self._client is None:
                assert self.shared is not None
                self.load()
                attach.attach(self.shared["gcs_address"], node=self._spec.node, log_to_driver=False)
                self._attached()
                handle = find_coordinator()
                if handle is None:
                    raise ClusterLostError(name, "the job's cluster has no coordinator", "see the log of `eray up`")
                client = CoordinatorClient(handle)
                self._nodes = {node.name: node.model_dump(mode="json") for node in client.topology().nodes}
                self._client = client
        if name not in self._nodes:
            raise ClusterLostError(name, "the job's cluster has no such node", "start `eray up` over all nodes")
        return self._nodes[name]

    def declare_tasks(self, served: Mapping[int, Mapping[str, Any]], names: Sequence[str]) -> None:
        """Tell the coordinator which task is on which node, where that is known; it is used in messages."""
        world, count = str(served[0]["world"]), int(served[0]["process_count"])
        layout = task_layout({rank: about["indexes_on_node"] for rank, about in served.items()}, names, count)
        if layout is not None:
            with suppress(ErayError):  # it has failed or closed meanwhile
                self._client.declare_world(world, count, generation=1, layout=layout)

    def exports(self) -> str:
        """Return what a shell needs to reach this cluster with Ray's own commands."""
        spec = self._spec
        return "\n".join(export_lines(self._gcs_address, self.dashboard, spec.auth, spec.token_path))

    def add_node(self, node: Mapping[str, Any]) -> None:
        """Tell the coordinator of a node whose Ray is up."""
        from eray._core.topology import Node

        self._client.add_node(Node.model_validate(node))

    def died(self, world: str, generation: int, process_index: int, cause: str, code: int | None) -> None:
        """Tell the coordinator of a dead process."""
        self._client.died(world, generation, process_index, cause, code)

    def lose_node(self, node_rank: int, reason: str) -> None:
        """Tell the coordinator that a node is gone, with its processes."""
        self._client.lose_node(node_rank, reason)

    def declare(self, generation: int, world: WorldSpec) -> None:
        """Tell the coordinator of the generation that is started."""
        layout = world.layout(self._spec.nodes)
        self._client.declare_world(world.name, world.process_count, generation=generation, layout=layout)
        count = world.process_count
        log_change(logger, "world-declared", world=world.name, generation=generation, process_count=count)

    def warn(self, reason: str) -> None:
        """Tell the coordinator that the job is about to end."""
        self._client.warn(reason)

    async def watch(self, version: int) -> Mapping[str, Any]:
        """Return the worlds when something changed, or after a while.

        Raises:
            ClusterLostError: the coordinator is gone for good.
        """
        # Not in a thread: a blocked ray.get would outlive the end of the cluster.
        import ray
        import ray.exceptions

        handle, backoff, attempt = self._client.handle, Backoff(), 0
        while ray.is_initialized():  # else the call would start a cluster of its own
            try:
                self._watching = handle.watch.remote(version, WATCH_S)
                answer: Mapping[str, Any] = await self._watching
                return answer
            except ray.exceptions.ActorUnavailableError:  # it restarts
                await asyncio.sleep(backoff.pause_s(attempt))
                attempt += 1
            except ray.exceptions.RayError as exc:
                raise ClusterLostError(
                    self._spec.node, f"the coordinator is gone ({type(exc).__name__})", "see the logs of Ray there"
                ) from exc
        raise ClusterLostError(self._spec.node, "this process has left Ray", "see the first error above")

    async def topology(self) -> tuple[Mapping[str, Any], Sequence[Mapping[str, Any]]]:
        """Return what the coordinator knows, and the tracks that it keeps, as JSON types.

        Raises:
            ClusterLostError: it does not answer.
        """
        import ray
        import ray.exceptions

        client = self._client
        if client is None or not ray.is_initialized():
            raise ClusterLostError(self._spec.node, "this process has left Ray", "see the first error above")
        try:
            topology, noted = await asyncio.gather(client.handle.topology.remote(), client.handle.notes.remote())
        except ray.exceptions.RayError as exc:
            raise ClusterLostError(
                self._spec.node, f"the coordinator does not answer ({type(exc).__name__})", "see the logs of Ray there"
            ) from exc
        return topology, noted["tracks"]

    def publish(self, nodes: Sequence[Mapping[str, Any]]) -> None:
        """Tell Ray's job drivers, people and the login node how this cluster is reached."""
        import ray

        context, spec = ray.get_runtime_context(), self._spec
        if self.dashboard is not None:
            self._keep_address(context.gcs_address)
        if spec.job is None:
            return
        about = spec.identity | {
            "gcs_address": self._gcs_address,
            "dashboard": self.dashboard,
            "session": context.get_session_name(),
            "versions": {"ray": ray.__version__, "python": platform.python_version()},
            "nodes": list(nodes),
        }
        job_home.publish(spec, about)

    def _keep_address(self, gcs_address: str) -> None:
        """Write what Ray reads when it starts a job's driver: without it the driver gets any Ray of this machine.

        Ray writes the same itself, but only when `ray start` is done.
        """
        with suppress(DirectoryError):
            files.write_private(os.path.join(self._spec.ray_dir, "ray_current_cluster"), gcs_address)

    def close(self) -> None:
        """Leave Ray before it is stopped: a driver of a dying cluster makes noise."""
        if self._client is not None:
            from eray._ray import attach
            from eray._ray.calls import take_back

            self._client = None
            if self._watching is not None:
                take_back(self._watching)
            attach.detach()


def shared_cluster(spec: NodeSpec) -> dict[str, Any] | None:
    """Return how the job's own cluster is reached, where `eray up` runs on this node; None where it does not."""
    if spec.shared_run_dir is None:
        return None
    about = files.read_json(os.path.join(spec.shared_run_dir, NODE_FILE))
    if about is None or not process.is_alive(int(about["pid"]), about["started"]):
        return None
    return {name: about[name] for name in ("gcs_address", "token_path", "auth")}


def _job_fields(spec: NodeSpec) -> dict[str, Any]:
    names = {"id": spec.job, "key": spec.key, "restart": spec.restart, "cluster": spec.cluster, "head": spec.node}
    return {**names, "purpose": spec.purpose, "node_count": len(spec.nodes), "nodes": list(spec.nodes)}
