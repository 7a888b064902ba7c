"""JAX's table of cluster environments: the one place that touches it, by names that JAX does not promise.

``jax.distributed.initialize(cluster_detection_method=NAME)`` looks a class up in that table, and nothing public puts
one there (jax/_src/clusters, JAX 0.8.1 to 0.12). What is needed is looked at first; where JAX has changed, the error
says so and how to go without.
"""

import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any

from eray._io import software
from eray.errors import JaxInterfaceError

ASKED = ("is_env_present", "get_coordinator_address", "get_process_count", "get_process_id", "get_local_process_id")
ADDRESS_PARAMETERS = {"timeout_secs", "override_coordinator_port"}
SLURM = "slurm"


def register(facts: Any, local_device: Callable[[], int | None]) -> None:
    """Give JAX a cluster environment that it uses only when it is asked for by name; again it changes nothing.

    Args:
        facts: a class with that ``name`` and the class methods that JAX asks for.
        local_device: returns the one ordinal of this process, None for all that it sees: what JAX makes of its
            ``get_local_process_id``.

    Raises:
        JaxInterfaceError: JAX's table is not as it was.
    """
    base = _base()
    if any(getattr(each, "name", "") == facts.name for each in base._cluster_types):
        return
    own = {"opt_in_only_method": True, "get_local_process_id": staticmethod(local_device), "__module__": __name__}
    made = type("ErayCluster", (facts, base), own)
    if made not in base._cluster_types:  # today JAX does it for every class that is derived
        raise _changed("it does not take in derived classes")
    # JAX looks for a name from the front, and the oldest stumbles over its classes that have none.
    base._cluster_types.remove(made)
    base._cluster_types.insert(0, made)


def detected() -> str | None:
    """Return the name of the cluster, other than Slurm, that JAX's own detection finds around this process, or None.

    Only what JAX takes without being asked counts: that mpi4py can be imported is no cluster.

    Raises:
        JaxInterfaceError: JAX's table is not as it was.
    """
    for each in _base()._cluster_types:
        name = getattr(each, "name", "")
        if not each.opt_in_only_method and name not in ("", SLURM) and each.is_env_present():
            return str(name)
    return None


def _base() -> Any:
    try:
        from jax._src import clusters
    except ImportError as exc:
        raise _changed(f"jax._src.clusters cannot be imported ({exc})") from exc
    return checked(clusters)


def checked(clusters: ModuleType) -> Any:
    """Return the base class of JAX's cluster environments.

    Raises:
        JaxInterfaceError: it lacks what eray uses, or asks for what eray does not know.
    """
    base = getattr(clusters, "ClusterEnv", None)
    if base is None:
        raise _changed("there is no ClusterEnv")
    missing = [name for name in (*ASKED, "opt_in_only_method", "_cluster_types") if not hasattr(base, name)]
    if missing:
        raise _changed(f"ClusterEnv has no {', '.join(missing)}")
    unknown = set(inspect.signature(base.get_coordinator_address).parameters) - ADDRESS_PARAMETERS
    if unknown:
        raise _changed(f"get_coordinator_address is asked with {', '.join(sorted(unknown))}")
    return base


def _changed(found: str) -> JaxInterfaceError:
    return JaxInterfaceError(
        software.installed("jax") or "none",
        found,
        "call eray.connect(), or give jax.distributed.initialize() the values of eSlurmCluster's methods as arguments",
    )
