"""The names of eFormer's ``executor.cluster_util``, carried out by eray: programs run after changing one import.

Names, arguments, defaults and results follow eFormer's module, which followed Levanter's (see NOTICE); nothing is
imported from either. New programs call ``eray.connect()`` instead (docs/migrating-from-eformer.md).
"""

import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from eray._connect import connect_at, current_connection, install_exit_hooks
from eray._door import door
from eray._slurm import variables
from eray._slurm.rendezvous import coordinator_address, is_task, task_of
from eray.errors import SlurmMissingError

__all__ = ["DistributedConfig", "RayClusterConfig", "auto_ray_cluster", "eSlurmCluster", "logical_cpu_core_count"]

logger = logging.getLogger(__name__)

NAMESPACE = "eray-executor"


class eSlurmCluster:  # eFormer's name
    """What Slurm says about this task. All methods read the environment anew.

    Where another process places this one (``eray run``, a Ray worker) Slurm's task variables are not its own, and it is
    no task here.
    """

    name = "eray"
    """What JAX calls this cluster after ``register_with_jax()``."""

    @classmethod
    def is_env_present(cls) -> bool:
        """Tell whether this process is a task of a Slurm step."""
        return is_task(os.environ)

    @classmethod
    def get_coordinator_address(
        cls, timeout_secs: int | None = None, override_coordinator_port: str | None = None
    ) -> str:
        """Return ``"hostname:port"`` of the node of the step's process 0, the port made from the job id.

        The port is in JAX's range, 61440 to 65535. Two steps of a job, and jobs whose ids differ by a multiple of
        4096, get the same one; ``DistributedConfig().initialize()`` therefore asks eray's coordinator instead.

        Args:
            timeout_secs: JAX's; nothing is waited for here.
            override_coordinator_port: the port instead, JAX's JAX_COORDINATOR_PORT.

        Raises:
            ValueError: there is no list of nodes or no job id (SlurmMissingError), or it is malformed.
        """
        from eray._distributed import host_file

        return coordinator_address(os.environ, port=override_coordinator_port, host_file=host_file(os.environ))

    @classmethod
    def get_local_device_ids_for_process(cls) -> list[int] | None:
        """Return this task's part of the devices that it sees, as ordinals in its visible list.

        None where it has none, or where one task alone cannot know its part.

        Raises:
            ValueError: the devices do not divide among the node's tasks (DevicePlanError), or a variable is malformed.
        """
        from eray._distributed import own_share
        from eray._identity import read_site

        if not cls.is_env_present():
            return None
        try:
            site = read_site(os.environ)
        except SlurmMissingError:
            return None
        share = own_share(site)
        return None if share is None or share.local_device_ids is None else list(share.local_device_ids)

    @classmethod
    def get_process_count(cls) -> int:
        """Return how many tasks the step has; raises as ``get_process_id``."""
        return task_of(os.environ).process_count

    @classmethod
    def get_process_id(cls) -> int:
        """Return this task's index in its step.

        Raises:
            ValueError: this is no task of a step, or a variable is missing or malformed.
        """
        return task_of(os.environ).process_index

    @classmethod
    def get_local_process_id(cls) -> int | None:
        """Return this task's index on its node, None where it is no task of a step.

        Raises:
            ValueError: a variable is missing or malformed.
        """
        return task_of(os.environ).local_index if cls.is_env_present() else None

    @classmethod
    def register_with_jax(cls) -> str:
        """Let JAX take its arguments from this class where it is asked to, and return the name to ask by.

        ``jax.distributed.initialize(cluster_detection_method=eSlurmCluster.register_with_jax())``. JAX's own detection
        stays as it is. JAX takes one device or all of them from a class; for a part give ``local_device_ids`` too.

        Raises:
            JaxInterfaceError: this version of JAX takes no such class.
        """
        from eray._distributed import only_device
        from eray._jax.cluster_env import register

        register(cls, lambda: only_device(os.environ, cls.get_local_device_ids_for_process()))
        return cls.name


@dataclass(frozen=True)
class DistributedConfig:
    """How ``jax.distributed`` is started; what is None is found out.

    Attributes:
        coordinator_address: ``host:port`` where process 0 serves JAX. With it JAX is started as told, without eray's
            coordinator.
        num_processes: how many processes there are.
        process_id: this process's index, from 0.
        local_device_ids: ordinals of this process's devices in its visible list.
    """

    coordinator_address: str | None = None
    num_processes: int | None = None
    process_id: int | None = None
    local_device_ids: int | Sequence[int] | None = None

    @door
    def initialize(self) -> None:
        """Start ``jax.distributed`` where something is configured or there is a cluster, else say that it is not.

        In a step of Slurm, and under ``eray run``, that is ``eray.connect()``. A second call changes nothing.

        Raises:
            ValueError: the configuration or the environment cannot work (UsageError, ConfigurationError).
            RuntimeError: the cluster did not come up, or processes are missing (ClusterError, JoinError).
        """
        from eray import _distributed as distributed
        from eray._jax import runtime

        install_exit_hooks()
        ordinals = distributed.ordinals_of(self.local_device_ids)
        if runtime.is_up() or current_connection() is not None:
            logger.warning("jax.distributed is initialized already; DistributedConfig.initialize() changes nothing")
            return
        site, given = distributed.adapted_site(os.environ, ordinals), (self.num_processes, self.process_id)
        if self.coordinator_address is not None:
            place = distributed.place_of(site, *given)
            distributed.start_by_address(site, os.environ, self.coordinator_address, place, ordinals)
        elif given != (None, None):
            count, index = distributed.place_of(site, *given)
            connect_at(site, namespace=NAMESPACE, process_count=count, process_index=index)
        elif ordinals is not None or distributed.names_a_world(site):
            connect_at(site, namespace=NAMESPACE, process_count=None, process_index=None)
        elif not distributed.start_by_jax(site, os.environ):
            return
        logger.info("jax.distributed is initialized")


@dataclass
class RayClusterConfig:
    """How this process comes to its Ray cluster.

    Attributes:
        address: ``host:port`` of a cluster's GCS, or ``"local"``; None looks for it.
        start_workers: whether the step's other nodes give their CPUs and devices to the cluster.
        auto_start_cluster: False leaves Ray alone.
    """

    address: str | None = None
    start_workers: bool = True
    auto_start_cluster: bool = True

    def initialize(self) -> None:
        """Call ``auto_ray_cluster()`` with these settings, unless ``auto_start_cluster`` is False."""
        if self.auto_start_cluster:
            auto_ray_cluster(address=self.address, start_workers=self.start_workers)


_is_done = False


@door
def auto_ray_cluster(
    address: str | None = None,
    namespace: str | None = NAMESPACE,
    start_workers: bool = True,
    fail_if_cluster_already_initialized: bool = False,
    **kwargs: Any,
) -> None:
    """Connect this process to its Ray cluster, which is started where it is not there yet.

    Which one, the first that fits: ``address``; RAY_ADDRESS; under Slurm that of the step, or of ``eray run`` or
    ``eray up``; one of this machine alone. What is started ends with the last program that uses it. A second call is
    ignored with a warning.

    Args:
        address: ``host:port`` of a cluster's GCS, or ``"local"`` for a new one of this machine alone.
        namespace: Ray's, in which this process looks for named actors.
        start_workers: False leaves the step's other nodes without CPUs and devices in the cluster, so that nothing runs
            there; they take part all the same, for Ray needs a node of its own wherever a driver is.
        fail_if_cluster_already_initialized: raise where this process has a Ray of its own already, or the job has one.
        kwargs: for ``ray.init``.

    Raises:
        RuntimeError: Ray did not start or refuses this process (ClusterError).
        ValueError: an argument or the environment cannot work (UsageError, ConfigurationError).
    """
    global _is_done
    from eray import _auto_ray as auto
    from eray._distributed import adapted_site
    from eray._driver_cluster import RayInit

    install_exit_hooks()
    init = RayInit(namespace or NAMESPACE, kwargs)
    site, connection = adapted_site(os.environ), current_connection()
    if fail_if_cluster_already_initialized:
        auto.require_none(site, is_ours=connection is not None and not _is_done)
    if _is_done:
        logger.warning("auto_ray_cluster() was called before; this call is ignored")
        return
    if connection is not None:
        auto.use_connection(connection, os.environ, address, init, start_workers=start_workers)
    else:
        auto.enter(site, os.environ, address, init, start_workers=start_workers)
    _is_done = True
    logger.info("connected to the Ray cluster, in the namespace %s", init.namespace)


def logical_cpu_core_count() -> int:
    """Return the logical CPUs of this node that are ours: Slurm's figure for the step, else the process's affinity.

    Raises:
        ValueError: SLURM_CPUS_ON_NODE is no number (SlurmFormatError).
    """
    return variables.read_whole(os.environ, variables.CPUS_ON_NODE) or len(os.sched_getaffinity(0))
