"""``connect()``: one process joins its world."""

import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from eray._door import door
from eray._exit_hooks import ExitHooks
from eray._io.log_lines import is_debug
from eray.errors import ConnectionStateError

if TYPE_CHECKING:
    from eray._bringup import Site
    from eray._connection import Connection
    from eray._join import Join

_connected: "tuple[tuple[Any, ...], Connection] | None" = None
_connecting = threading.Lock()
_hooks = ExitHooks(lambda: None if _connected is None else _connected[1])


@door
def connect(
    *,
    world: str | None = None,
    process_count: int | None = None,
    process_index: int | None = None,
    jax: bool = True,
    timeout_s: float | None = None,
) -> "Connection":
    """Join this process's world, and return when every process of it has joined and JAX is up in all of them.

    Called again with the same arguments it returns the same connection.

    Args:
        world: name of the world; by default what ``eray run`` or the Slurm step says.
        process_count: processes in the world, by default from ``eray run`` or the step.
        process_index: this process's index, 0 to ``process_count`` - 1, likewise.
        jax: start ``jax.distributed``; False leaves JAX alone.
        timeout_s: seconds for the cluster and all processes to be there; by default ERAY_CLUSTER_TIMEOUT_S and then
            ERAY_JOIN_TIMEOUT_S.

    Raises:
        ConfigurationError: the environment cannot work: the message names the variable and the remedy.
        ClusterError: the cluster did not come up.
        JoinError: processes are missing, or one of them, or its JAX, is not as planned.
    """

    def make() -> "Join":
        from eray._identity import read_site
        from eray._join import Join

        return Join(os.environ, read_site(os.environ), with_jax=jax, timeout_s=timeout_s)

    return _join_once((world, process_count, process_index, jax), make)


def connect_at(site: "Site", *, namespace: str, process_count: int | None, process_index: int | None) -> "Connection":
    """Join as ``connect`` does, by settings that a caller inside eray has adapted, in this namespace of Ray's."""

    def make() -> "Join":
        from eray._join import Join

        return Join(os.environ, site, with_jax=True, namespace=namespace)

    return _join_once((None, process_count, process_index, True), make)


def _join_once(key: tuple[Any, ...], make: Callable[[], "Join"]) -> "Connection":
    global _connected
    with _connecting:
        if _connected is not None and _connected[1]._pid == os.getpid():
            return _same_connection(key, _connected)
        _hooks.install()
        world, process_count, process_index, _ = key
        join = make()
        try:
            connection = join.run(world=world, process_count=process_count, process_index=process_index)
        finally:
            _hooks.served_by = None if is_debug(os.environ) else join.served_by
        _connected = (key, connection)
        _hooks.leave_at_exit()
        return connection


def install_exit_hooks() -> None:
    """Let an uncaught error of eray's end this process with the error's own code."""
    _hooks.install()


def current_connection() -> "Connection | None":
    """Return this process's connection, None where it is no member of a world."""
    if _connected is None or not _connected[1].is_open or _connected[1]._pid != os.getpid():
        return None
    return _connected[1]


def _same_connection(key: tuple[Any, ...], connected: "tuple[tuple[Any, ...], Connection]") -> "Connection":
    before, connection = connected
    if connection._closed:
        raise ConnectionStateError("this process has left its world; a new one needs a new process")
    if key != before:
        names = ("world", "process_count", "process_index", "jax")
        said = ", ".join(f"{name}={old!r}, now {new!r}" for name, old, new in zip(names, before, key, strict=True))
        if key != (None, None, None, before[3]):
            raise ConnectionStateError(f"this process is connected already, with other arguments: {said}")
    return connection
