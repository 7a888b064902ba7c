"""eray starts Ray inside a Slurm allocation and lets JAX processes find each other through it.

Importing it is cheap: the names below are loaded on first use (PEP 562).
"""

import typing as _typing
from importlib import import_module as _import_module

from eray._core.version import __version__ as __version__

if _typing.TYPE_CHECKING:
    from eray._attach import Cluster, attach, coordinator
    from eray._connect import connect
    from eray._connection import Connection
    from eray._core.naming import COORDINATOR_NAME, NAMESPACE
    from eray._core.topology import Device, Node, Process, Topology, World
    from eray._launch import launch
    from eray._slurm.hostlist import expand_hostlist, fold_hostlist
    from eray.cluster_util import (
        DistributedConfig,
        RayClusterConfig,
        auto_ray_cluster,
        eSlurmCluster,
        logical_cpu_core_count,
    )
    from eray.errors import ErayError

_HOMES = {
    "COORDINATOR_NAME": "eray._core.naming",
    "NAMESPACE": "eray._core.naming",
    "Cluster": "eray._attach",
    "Connection": "eray._connection",
    "Device": "eray._core.topology",
    "DistributedConfig": "eray.cluster_util",
    "ErayError": "eray.errors",
    "Node": "eray._core.topology",
    "Process": "eray._core.topology",
    "RayClusterConfig": "eray.cluster_util",
    "Topology": "eray._core.topology",
    "World": "eray._core.topology",
    "attach": "eray._attach",
    "auto_ray_cluster": "eray.cluster_util",
    "connect": "eray._connect",
    "coordinator": "eray._attach",
    "eSlurmCluster": "eray.cluster_util",
    "expand_hostlist": "eray._slurm.hostlist",
    "fold_hostlist": "eray._slurm.hostlist",
    "launch": "eray._launch",
    "logical_cpu_core_count": "eray.cluster_util",
}

__all__ = [
    "COORDINATOR_NAME",
    "NAMESPACE",
    "Cluster",
    "Connection",
    "Device",
    "DistributedConfig",
    "ErayError",
    "Node",
    "Process",
    "RayClusterConfig",
    "Topology",
    "World",
    "attach",
    "auto_ray_cluster",
    "connect",
    "coordinator",
    "eSlurmCluster",
    "expand_hostlist",
    "fold_hostlist",
    "launch",
    "logical_cpu_core_count",
]


if not _typing.TYPE_CHECKING:  # a type checker knows the names from above, and so each one that is not there

    def __getattr__(name: str) -> _typing.Any:
        if name not in _HOMES:
            raise AttributeError(f"module 'eray' has no attribute {name!r}")
        value = getattr(_import_module(_HOMES[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return list(__all__)
