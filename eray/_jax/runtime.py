"""Start JAX's distributed runtime from a plan, and see what came of it. JAX's own guessing stays off.

The runtime is started recoverable (``jax_enable_recoverability``): JAX then neither ends the others when a process
dies nor holds a process that leaves in a barrier. The coordinator notices deaths and leaving instead, sooner and with
the cause (docs/decisions/0003).
"""

import contextlib
import inspect
import socket
import sys
import threading
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from typing import Any

from eray._core.tracks import Recorder
from eray._core.verdict import Seen
from eray._io.signals import kept_sigterm
from eray.errors import JaxStateError

PREEMPTION_SERVICE, OFF = "JAX_ENABLE_PREEMPTION_SERVICE", "0"
READ_BY_JAX = ("JAX_LOCAL_DEVICE_IDS", "JAX_COORDINATOR_ADDRESS", "JAX_COORDINATOR_BIND_ADDRESS")
HEARTBEAT_S = 3600
"""JAX's own failure detection is left to the coordinator; this only ends what outlives everything."""
RECOVERABLE = "jax_enable_recoverability"


class JaxImport:
    """``import jax`` in a thread, beside the start of everything else."""

    def __init__(self, spans: Recorder) -> None:
        self._spans = spans
        self._error: BaseException | None = None
        # No daemon: Python must not end in the middle of it, jaxlib then aborts the process (seen with 0.10.2).
        self._thread = threading.Thread(target=self._load, name="eray-import-jax")
        self._thread.start()

    def wait(self) -> None:
        """Wait for the import, and raise what it raised."""
        self._thread.join()
        if self._error is not None:
            raise self._error

    def _load(self) -> None:
        try:
            with self._spans.during("import jax"):
                import jax  # noqa: F401
        except BaseException as exc:
            self._error = exc


def set_defaults(environ: MutableMapping[str, str]) -> None:
    """Set what JAX reads when it is imported: SIGTERM stays the program's own (FACTS J6)."""
    environ.setdefault(PREEMPTION_SERVICE, OFF)


def require_untouched() -> None:
    """Refuse where the program started JAX before us.

    Raises:
        JaxStateError: ``jax.distributed`` or a backend is up already.
    """
    import jax

    if jax.distributed.is_initialized():
        raise JaxStateError(
            "jax.distributed.initialize() was called before eray.connect(); remove that call (or use jax=False)"
        )
    if _backend_is_up():
        raise JaxStateError(
            "a JAX backend was used before eray.connect() (jax.devices(), an array, …); call connect() first in the "
            "program (or use jax=False)"
        )


def require_no_accelerator() -> None:
    """Refuse where JAX in this process holds the memory of accelerators.

    Raises:
        JaxStateError: a backend is up, and it is not the CPU's.
    """
    import jax

    if _backend_is_up() and (platform := jax.devices()[0].platform) != "cpu":
        raise JaxStateError(
            f"JAX holds this node's {platform} in the process that calls launch(): set JAX_PLATFORMS=cpu in it, or "
            "launch before it uses JAX"
        )


def reserve_port() -> socket.socket:
    """Bind a kernel-chosen port that JAX's service can still listen on, and nobody else (FACTS J5).

    Keep the socket open until the service is up.
    """
    for family, host in ((socket.AF_INET6, "::"), (socket.AF_INET, "0.0.0.0")):
        with contextlib.suppress(OSError):
            reserved = socket.socket(family, socket.SOCK_STREAM)
            reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            if family == socket.AF_INET6:
                reserved.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            reserved.bind((host, 0))
            return reserved
    raise JaxStateError("no TCP port can be bound on this node; look at `ulimit -n` and the network namespaces")


def use_cpu_only() -> None:
    """Keep JAX off accelerators that are not this process's."""
    _config().update("jax_platforms", "cpu")


def initialize(
    *,
    coordinator_address: str,
    process_count: int,
    process_index: int,
    local_device_ids: Sequence[int] | None,
    timeout_s: float,
    bind_ipv4: bool,
    environ: MutableMapping[str, str],
    proxies_off: Mapping[str, str],
) -> None:
    """Call ``jax.distributed.initialize`` with all it can be told, and nothing left to guess (FACTS J3, J8, J9)."""
    import jax

    options: dict[str, Any] = {
        "coordinator_address": coordinator_address,
        "num_processes": process_count,
        "process_id": process_index,
        "local_device_ids": None if local_device_ids is None else list(local_device_ids),
        "cluster_detection_method": "deactivate",
        "initialization_timeout": max(int(timeout_s), 10),
        "heartbeat_timeout_seconds": HEARTBEAT_S,
        "coordinator_bind_address": f"0.0.0.0:{coordinator_address.rpartition(':')[2]}" if bind_ipv4 else None,
    }
    known = inspect.signature(jax.distributed.initialize).parameters
    # The oldest JAX has no such option: it always takes the signal.
    ours = kept_sigterm() if environ.get(PREEMPTION_SERVICE) == OFF else contextlib.nullcontext()
    with _without(environ, READ_BY_JAX), _with(environ, proxies_off), _recoverable(environ), ours:
        jax.distributed.initialize(**{name: value for name, value in options.items() if name in known})


def initialize_alone(
    *,
    method: str,
    timeout_s: float,
    environ: MutableMapping[str, str],
    coordinator_address: str | None = None,
    process_count: int | None = None,
    process_index: int | None = None,
    local_device_ids: Sequence[int] | None = None,
    proxies_off: Mapping[str, str] | None = None,
) -> None:
    """Call ``jax.distributed.initialize`` where no coordinator of eray's notices deaths: JAX itself does that then.

    ``method`` is the one of JAX's cluster detection methods that fills in what is None, "deactivate" none of them.
    """
    import jax

    with _without(environ, READ_BY_JAX), _with(environ, proxies_off or {}):
        jax.distributed.initialize(
            coordinator_address=coordinator_address,
            num_processes=process_count,
            process_id=process_index,
            local_device_ids=None if local_device_ids is None else list(local_device_ids),
            cluster_detection_method=method,
            initialization_timeout=int(timeout_s),
        )


def is_up() -> bool:
    """Tell whether ``jax.distributed`` is initialised in this process, without importing JAX for that."""
    return "jax" in sys.modules and bool(sys.modules["jax"].distributed.is_initialized())


def observe() -> Seen:
    """Start JAX's backend and return what it made of the plan."""
    import jax

    devices = jax.local_devices()
    return Seen(
        process_count=jax.process_count(),
        process_index=jax.process_index(),
        device_count=len(devices),
        platform=devices[0].platform if devices else "",
    )


def platforms_setting() -> str:
    """Return JAX's ``jax_platforms`` as it stands: from JAX_PLATFORMS or the program, empty where JAX may choose."""
    return str(_config().jax_platforms or "")


def shutdown() -> None:
    """Disconnect from JAX's service; process 0 ends it, after the others."""
    if is_up():
        sys.modules["jax"].distributed.shutdown()


def _config() -> Any:
    import jax

    return jax.config


def _backend_is_up() -> bool:
    # The one private name: nothing public tells, and asking for devices would start the backend (FACTS R26, J9).
    try:
        from jax._src.xla_bridge import backends_are_initialized
    except ImportError:
        return False
    return bool(backends_are_initialized())


@contextlib.contextmanager
def _recoverable(environ: Mapping[str, str]) -> Iterator[None]:
    config = _config()
    before = getattr(config, RECOVERABLE, None)
    if before is None or RECOVERABLE.upper() in environ:  # an older JAX, or the user decided
        yield
        return
    config.update(RECOVERABLE, True)
    try:
        yield
    finally:
        config.update(RECOVERABLE, before)


@contextlib.contextmanager
def _without(environ: MutableMapping[str, str], names: Sequence[str]) -> Iterator[None]:
    taken = {name: environ.pop(name) for name in names if name in environ}
    try:
        yield
    finally:
        environ.update(taken)


@contextlib.contextmanager
def _with(environ: MutableMapping[str, str], values: Mapping[str, str]) -> Iterator[None]:
    before = {name: environ.get(name) for name in values}
    environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                environ.pop(name, None)
            else:
                environ[name] = value
