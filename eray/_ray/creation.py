"""Create the coordinator's actor."""

from typing import Any

import ray
from ray.actor import ActorHandle
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from eray._ray.coordinator import Coordinator
from eray._settings import Settings

MAX_CONCURRENCY = 100_000


def create_coordinator(
    *,
    node_id: str | None,
    namespace: str,
    name: str,
    snapshot_path: str | None,
    job: dict[str, Any],
    log: tuple[Settings, str] | None = None,
    measured: bool = False,
) -> ActorHandle[Coordinator]:
    """Create the coordinator, or return the one that has the name already (whose arguments then count, FACTS R12).

    ``node_id`` is the Ray node that it is bound to, ``log`` how it logs into its own file in Ray's logs, and how lines
    call its node, ``measured`` says that metrics can be seen. Ask it something before this process ends: a driver that
    leaves earlier takes the unborn actor with it (FACTS R13).
    """
    strategy = None if node_id is None else NodeAffinitySchedulingStrategy(node_id, soft=False)
    actor_class: Any = ray.remote(Coordinator).options(
        name=name,
        namespace=namespace,
        lifetime="detached",
        get_if_exists=True,
        num_cpus=0,
        max_restarts=-1,
        max_task_retries=0,
        max_concurrency=MAX_CONCURRENCY,
        scheduling_strategy=strategy,
    )
    handle: ActorHandle[Coordinator] = actor_class.remote(snapshot_path, job, log, measured)
    return handle
