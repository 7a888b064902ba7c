"""The head's own Ray driver: it creates the coordinator and speaks to it for the supervisors."""

import asyncio
import logging
import os
from collections.abc import Mapping
from typing import Any

from eray._core.naming import COORDINATOR_NAME, NAMESPACE
from eray._core.nodespec import NodeSpec
from eray._core.timing import Backoff
from eray._ray.commands import ray_variables
from eray.errors import ClusterLostError

SNAPSHOT_NAME = "coordinator.json"
WATCH_S = 20.0


class HeadDriver:
    """Blocking calls, made in threads; Ray is loaded with the first."""

    def __init__(self, spec: NodeSpec) -> None:
        self._spec = spec
        self._client: Any = None

    @property
    def is_up(self) -> bool:
        """Whether the coordinator answers."""
        return self._client is not None

    def load(self) -> None:
        """Import Ray while its node starts, with this cluster's authentication."""
        os.environ.update(ray_variables(self._spec))
        logging.getLogger("ray").setLevel(logging.ERROR)  # it warns that it is used in a thread
        import ray  # noqa: F401

        import eray._ray.coordinator  # noqa: F401

    def create(self, gcs_address: str, node: Mapping[str, Any], token_path: str | None = None) -> None:
        """Attach to the cluster, create the coordinator on the head, and declare the world that will be started."""
        from eray._ray import attach
        from eray._ray.client import CoordinatorClient
        from eray._ray.coordinator import create_coordinator

        self.load()
        if token_path is not None:
            os.environ["RAY_AUTH_TOKEN_PATH"] = token_path
        attach.attach(gcs_address, node=self._spec.node, log_to_driver=False)
        spec = self._spec
        handle = create_coordinator(
            node_id=node.get("ray_node_id"),
            namespace=NAMESPACE,
            name=COORDINATOR_NAME,
            snapshot_path=f"{spec.run_dir}/{SNAPSHOT_NAME}",
            job={"id": spec.job, "key": spec.key, "restart": spec.restart, "cluster": spec.cluster, "head": spec.node},
        )
        client = CoordinatorClient(handle)
        client.ping(timeout_s=spec.cluster_timeout_s)
        if spec.world is not None:
            layout = spec.world.layout(spec.nodes)
            client.declare_world(spec.world.name, spec.world.process_count, generation=1, layout=layout)
        self._client = client

    def add_node(self, node: Mapping[str, Any]) -> None:
        """Tell the coordinator of a node whose Ray is up."""
        from eray._core.topology import Node

        self._client.add_node(Node.model_validate(node))

    def died(self, world: str, generation: int, process_index: int, cause: str) -> None:
        """Tell the coordinator of a dead process."""
        self._client.died(world, generation, process_index, cause)

    async def watch(self, version: int) -> Mapping[str, Any]:
        """Return the worlds when something changed, or after a while.

        Raises:
            ClusterLostError: the coordinator is gone for good.
        """
        # Not in a thread: a blocked ray.get would outlive the end of the cluster.
        import ray.exceptions

        handle, backoff, attempt = self._client.handle, Backoff(), 0
        while True:
            try:
                answer: Mapping[str, Any] = await handle.watch.remote(version, WATCH_S)
                return answer
            except ray.exceptions.ActorUnavailableError:  # it restarts
                await asyncio.sleep(backoff.pause_s(attempt))
                attempt += 1
            except ray.exceptions.RayError as exc:
                raise ClusterLostError(
                    self._spec.node, f"the coordinator is gone ({type(exc).__name__})", "see the logs of Ray there"
                ) from exc

    def detach(self) -> None:
        """Leave Ray before it is stopped; a driver of a dying cluster makes noise."""
        if self._client is not None:
            from eray._ray import attach

            self._client = None
            attach.detach()
