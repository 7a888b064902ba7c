"""JAX's table of cluster environments: the one place that touches it, by names that JAX does not promise.

``jax.distributed.initialize(cluster_detection_method=NAME)`` looks a class up in that table, and nothing public puts
one there (jax/_src/clusters, JAX 0.8.1 to 0.12). What is needed is looked at first; where JAX has changed, the error
says so and how to go without.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from eray.errors import JaxInterfaceError

ASKED = ("is_env_present", "get_coordinator_address", "get_process_count", "get_process_id", "get_local_process_id")
ADDRESS_PARAMETERS = {"timeout_secs", "override_coordinator_port"}
SLURM = "slurm"


@dataclass(frozen=True)
class Facts:
    """What JAX asks a cluster environment, as functions. ``local_device`` returns one ordinal, None for all of them."""

    is_present: Callable[[], bool]
    coordinator_address: Callable[[str | None], str]
    process_count: Callable[[], int]
    process_index: Callable[[], int]
    local_device: Callable[[], int | None]


def register(name: str, facts: Facts) -> None:
    """Give JAX a cluster environment that it uses only when it is asked for by ``name``; again it changes nothing.

    Raises:
        JaxInterfaceError: JAX's table is not as it was.
    """
    base = _base()
    if any(getattr(each, "name", "") == name for each in base._cluster_types):
        return

    def is_env_present(cls: Any) -> bool:
        return facts.is_present()

    def get_coordinator_address(
        cls: Any, timeout_secs: int | None = None, override_coordinator_port: str | None = None
    ) -> str:
        return facts.coordinator_address(override_coordinator_port)

    def get_process_count(cls: Any) -> int:
        return facts.process_count()

    def get_process_id(cls: Any) -> int:
        return facts.process_index()

    def get_local_process_id(cls: Any) -> int | None:
        return facts.local_device()

    methods = (is_env_present, get_coordinator_address, get_process_count, get_process_id, get_local_process_id)
    body: dict[str, Any] = {method.__name__: classmethod(method) for method in methods}
    made = type("ErayCluster", (base,), {"name": name, "opt_in_only_method": True, "__module__": __name__, **body})
    if made not in base._cluster_types:  # today JAX does it for every class that is derived
        raise _changed("it does not take in derived classes")


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
    import jax

    return JaxInterfaceError(
        jax.__version__,
        found,
        "call eray.connect(), or give jax.distributed.initialize() the values of eSlurmCluster's methods as arguments",
    )
