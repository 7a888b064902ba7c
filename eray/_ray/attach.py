"""Attach this process to one Ray cluster, and to no other.

Ray finds out slowly that an address is dead or a token wrong (FACTS R25), so the address is dialled first.
"""

import importlib
import logging
import signal
import sys
from collections.abc import Callable, Mapping, MutableMapping
from types import TracebackType
from typing import Any

from eray._core.access import nothing_answers
from eray._core.naming import NAMESPACE
from eray._io import net
from eray._io.signals import in_main_thread, kept_sigterm
from eray._ray.commands import ray_defaults
from eray.errors import RayAttachError

DIAL_S = 3.0
_QUIET: dict[str, Any] = {"logging_level": logging.WARNING, "configure_logging": False}
_joined: str | None = None
"""The namespace in which this process was attached here: that one is eray's own choice."""


def load(environ: MutableMapping[str, str], variables: Mapping[str, str], *, has_dashboard: bool) -> bool:
    """Import Ray while its cluster comes up, with ``variables`` set; False where it was imported before."""
    is_new = "ray" not in sys.modules
    adopt(environ, variables, has_dashboard=has_dashboard)
    import ray  # noqa: F401

    import eray._ray.coordinator  # noqa: F401  # Ray loads the actor's class, and pydantic, with its handle

    return is_new


def adopt(environ: MutableMapping[str, str], variables: Mapping[str, str], *, has_dashboard: bool = True) -> None:
    """Set the variables of one cluster. A token of another's, which Ray prefers to the path of one, is taken out."""
    for name, value in ray_defaults(has_dashboard=has_dashboard).items():
        environ.setdefault(name, value)
    environ.update(variables)
    environ.pop("RAY_AUTH_TOKEN", None)


def attach(
    address: str,
    *,
    namespace: str = NAMESPACE,
    node: str,
    log_to_driver: bool = True,
    named: str = "the Ray address ",
    up_to_date: bool = False,
    options: Mapping[str, Any] | None = None,
) -> str:
    """Make this process a driver of the Ray cluster whose GCS is at ``address``, and return its dashboard's host:port.

    RAY_AUTH_MODE and RAY_AUTH_TOKEN_PATH must be set before; ``up_to_date`` tells that they were so when Ray was
    imported. A ``ray.init`` of the user's is kept when it is the same cluster and namespace. ``named`` is what
    messages call the address, ``options`` are the caller's own for ``ray.init``.

    Raises:
        RayAttachError: nothing answers there, it refuses us, or this process is attached to another cluster.
    """
    global _joined
    up_to_date = up_to_date or "ray" not in sys.modules
    import ray

    if ray.is_initialized():
        _check_same(address, namespace, node)
        return ""
    host, _, port = address.rpartition(":")
    if not port.isdigit() or not net.port_is_open(host.strip("[]"), int(port), DIAL_S):
        raise nothing_answers(node, named, address)
    if not up_to_date:
        refresh_authentication()
    try:
        with kept_sigterm():
            context = ray.init(
                address=address,
                namespace=namespace,
                **_QUIET | {"log_to_driver": log_to_driver} | dict(options or {}),
            )
    except (ConnectionError, RuntimeError, TypeError, ValueError, ray.exceptions.RayError) as exc:
        raise RayAttachError(
            node, f"Ray at {address} refuses this process ({type(exc).__name__}: {exc})", "see the logs of Ray there"
        ) from exc
    _joined = namespace
    return str(context.dashboard_url or "")


def detach() -> None:
    """End this process's attachment, if it has one."""
    if current_address() is not None:
        import ray

        ray.shutdown()


def program_excepthook() -> Callable[[type[BaseException], BaseException, TracebackType | None], object]:
    """Return ``sys.excepthook`` without Ray's around it, which asks the cluster first: for ever where that is lost."""
    worker, hook = sys.modules.get("ray._private.worker"), sys.excepthook
    is_rays = worker is not None and hook is getattr(worker, "custom_excepthook", None)
    return getattr(worker, "normal_excepthook", hook) if is_rays else hook


def take_out_sigterm_handler() -> None:
    """Give SIGTERM back to the system where it has the handler of ``ray.init``, which every driver gets unasked.

    The program's own stays, and that of Ray's worker processes. It is known by its private name (Ray 2.60).
    """
    handler = signal.getsignal(signal.SIGTERM)
    name = f"{getattr(handler, '__module__', '')}.{getattr(handler, '__qualname__', '')}"
    if name == "ray._private.worker.init.<locals>.sigterm_handler" and in_main_thread():
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def current_address() -> str | None:
    """Return the address of the Ray cluster that this process is attached to, None where it is to none."""
    if "ray" not in sys.modules:
        return None
    import ray

    return ray.get_runtime_context().gcs_address if ray.is_initialized() else None


def current_namespace() -> str | None:
    """Return the namespace of Ray's in which this process is, None where it is attached to none."""
    if current_address() is None:
        return None
    import ray

    return str(ray.get_runtime_context().namespace)


def refresh_authentication() -> None:
    """Let a Ray that was imported before RAY_AUTH_MODE was set read it again (FACTS R26).

    Ray does the same by itself when its own options change. Both names are private: the one place that uses them.

    Raises:
        RayAttachError: this Ray has them no more.
    """
    try:
        raylet: Any = importlib.import_module("ray._raylet")
        configure: Callable[[str], Any] = raylet.Config.initialize
        loader: Any = raylet.AuthenticationTokenLoader
    except (ImportError, AttributeError) as exc:
        raise RayAttachError(
            "this node",
            "ray was imported before eray.connect(), and this version of Ray cannot read RAY_AUTH_MODE again",
            "call eray.connect() before `import ray`, or export RAY_AUTH_MODE and RAY_AUTH_TOKEN_PATH (`eray env`)",
        ) from exc
    configure("")
    loader.instance().reset_cache()


def _check_same(address: str, namespace: str, node: str) -> None:
    import ray

    context = ray.get_runtime_context()
    if not _is_one(context.gcs_address, address):
        raise RayAttachError(
            node,
            f"this process is attached to the Ray at {context.gcs_address}, its cluster is at {address}",
            "remove the ray.init() before eray.connect(), or call ray.shutdown() first",
        )
    if context.namespace not in (namespace, _joined):
        raise RayAttachError(
            node,
            f"this process is in Ray's namespace {context.namespace!r}, eray needs {namespace!r}",
            f'call ray.init(namespace="{namespace}"), or leave it to eray.connect()',
        )


def _is_one(first: str, second: str) -> bool:
    """Tell whether two addresses are of one GCS: Ray calls this machine by another of its addresses than we may."""
    hosts, ports = zip(*(address.rpartition(":")[::2] for address in (first, second)), strict=True)
    return ports[0] == ports[1] and (hosts[0] == hosts[1] or all(net.is_local(host.strip("[]")) for host in hosts))
