"""``launch()``: a function runs as the processes of a world, in Ray actors."""

import os
import secrets
import socket
import sys
import threading
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from eray._attach import attach
from eray._connect import connect, current_connection
from eray._core.gang_layout import Ask
from eray._core.lives import Rule
from eray._core.process_variables import device_variables, identity_variables
from eray._door import door
from eray._identity import read_site
from eray._io.log_lines import host_of, is_debug, log_program
from eray._own_cluster import find_node_file, start_of_own
from eray._ray.notices import say
from eray._settings import Settings
from eray._slurm.environment import SHELLS, Mode
from eray._slurm.membership import check_lone_process
from eray.errors import ConnectionStateError, UsageError

if TYPE_CHECKING:
    from eray._ray.gang_actor import MemberPlace
    from eray._ray.parcel import Parcel

T = TypeVar("T")

NAME_BYTES = 4
_attaching = threading.Lock()


@door
def launch(
    fn: Callable[..., T],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    processes: int | None = None,
    processes_per_node: int = 1,
    devices_per_process: int | None = None,
    cpus_per_process: float | None = None,
    runtime_env: Mapping[str, Any] | None = None,
    max_restarts: int = 0,
    min_nodes: int | None = None,
    timeout_s: float | None = None,
    world: str | None = None,
) -> list[T]:
    """Run ``fn(*args, **kwargs)`` in each process of a new world, and return the results by process_index.

    The processes are Ray actors on the cluster to which this driver is attached (see ``attach``); without one in the
    environment it is a local Ray, which ends with this process. In ``fn`` JAX is up over all of them, and
    ``eray.connect()`` returns the process's connection. Arguments and results are as in Ray: pickled, references
    resolved.

    Args:
        fn: what every process runs.
        processes: processes in all, spread over the nodes as by ``eray run -n``.
        processes_per_node: processes on each node, where ``processes`` is not given.
        devices_per_process: GPUs of each process, by default its part of its node's. On nodes without GPUs JAX makes as
            many CPU devices. 0 keeps the processes off the GPUs.
        cpus_per_process: CPUs that Ray reserves for each, by default its part of its node's.
        runtime_env: Ray's runtime environment of the processes.
        max_restarts: how often a world that failed is started again, in new processes, on the nodes that are left.
        min_nodes: nodes that a restart needs, by default one; awaited for ERAY_CLUSTER_TIMEOUT_S.
        timeout_s: seconds to find room for the processes, start them, and join; by default ERAY_JOIN_TIMEOUT_S.
        world: the world's name, by default one of its own.

    Raises:
        Exception: what ``fn`` raised in the process that failed first, with notes that name it and the others.
        WorldFailedError: a process died.
        PlacementError: the cluster has no room for the processes.
        UsageError: an argument makes no sense.
        ConnectionStateError: this process is itself one of a world.
    """
    ask = Ask(processes, processes_per_node, devices_per_process, cpus_per_process)
    ask.check()
    _check(fn, args, kwargs, processes, processes_per_node, runtime_env, max_restarts, min_nodes, timeout_s, world)
    environ: MutableMapping[str, str] = os.environ
    settings = Settings.from_environ(environ)
    log_program(environ, host_of(environ))
    _require_driver(settings)
    _attach(environ)
    from eray._ray.calls import find_coordinator
    from eray._ray.client import CoordinatorClient
    from eray._ray.launching import Launching
    from eray._ray.program import Program

    name = world or f"launch-{secrets.token_hex(NAME_BYTES)}"
    client = CoordinatorClient(find_coordinator())
    _require_free_devices(ask)
    own = {**(runtime_env or {}), "env_vars": {**(runtime_env or {}).get("env_vars", {}), "ERAY_WORLD": name}}
    program = Program(run_member, fn, tuple(args), dict(kwargs or {}), own, devices_per_process)
    rule = Rule(max_restarts, min_nodes or 1, settings.healthy_s)
    limits = {"timeout_s": timeout_s or settings.join_timeout_s, "nodes_s": settings.cluster_timeout_s}
    return Launching(client, name, ask, program, rule, **limits, say=say).results()


def run_member(place: "MemberPlace", fn: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> "Parcel":
    """Run ``fn`` as one process of a world; called in the actor's process."""
    from eray._ray.frames import keep_frames

    try:
        return _run_member(place, fn, args, kwargs)
    except BaseException as exc:
        if not is_debug(os.environ):
            keep_frames(exc)
        raise


def _run_member(place: "MemberPlace", fn: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> "Parcel":
    from eray._connection import describe
    from eray._ray.parcel import Parcel

    _tell_environment(place, os.environ)
    connection = connect(timeout_s=place.timeout_s)
    try:
        parcel = Parcel.of(fn(*args, **kwargs), place.process_index)
    except SystemExit as exc:
        if exc.code:
            connection.resign(describe(exc))
            raise RuntimeError(f"the program exits with {exc.code!r}") from exc  # Ray would take it for an actor's end
        parcel = Parcel.of(None, place.process_index)
    except BaseException as exc:
        connection.resign(describe(exc))
        raise
    connection.close()
    return parcel


def _tell_environment(place: "MemberPlace", environ: MutableMapping[str, str]) -> None:
    """Tell this process who it is, in the variables that ``eray run`` uses too, before JAX is imported."""
    environ.update(identity_variables(place.world, place.generation, place.process_index, place.process_count))
    if place.devices is None:
        return
    if place.gpus or place.devices == 0:
        if place.devices == 0:
            environ.setdefault("JAX_PLATFORMS", "cpu")
            environ.setdefault("ERAY_DEVICES", "none")
        return
    environ.update(device_variables(place.devices, environ.get("XLA_FLAGS", "")))


def _attach(environ: MutableMapping[str, str]) -> None:
    """Attach to the cluster of the environment, or to a local one where it names none."""
    from eray._ray.attach import current_address

    site = read_site(environ)
    with _attaching:
        is_led = current_address() is not None or bool(environ.get("RAY_ADDRESS"))
        if not is_led and find_node_file(site) is None and start_of_own(site) is None:
            mode = site.slurm.mode
            if mode in (Mode.NONE, Mode.SINGLE, *SHELLS):
                check_lone_process(site.slurm, socket.gethostname())
                from eray._driver_cluster import start_local

                start_local(site, environ)
        attach()


def _require_driver(settings: Settings) -> None:
    connection = current_connection()
    if connection is not None:
        raise ConnectionStateError(
            f"launch() in process {connection.process_index} of world {connection.world!r}, which holds the devices: "
            "call it in a driver (`eray submit`), or let that world compute"
        )
    if settings.process_index is not None or settings.run_dir is not None:
        raise ConnectionStateError(
            f"launch() in a process that is started for world {settings.world!r}, as process {settings.process_index}: "
            "call it in a driver, which `eray submit` or a shell beside `eray up` starts"
        )


def _require_free_devices(ask: Ask) -> None:
    """Refuse where JAX in this process holds the memory of GPUs that the processes are to have."""
    from eray._ray.rooms import gpus_here

    if "jax" in sys.modules and ask.devices_per_process != 0 and gpus_here():
        from eray._jax.runtime import require_no_accelerator

        require_no_accelerator()


def _check(
    fn: object,
    args: object,
    kwargs: object,
    processes: int | None,
    processes_per_node: int,
    runtime_env: object,
    max_restarts: object,
    min_nodes: object,
    timeout_s: object,
    world: object,
) -> None:
    if not callable(fn):
        raise UsageError(f"fn={fn!r}: must be a function; its arguments go into args and kwargs")
    if isinstance(args, str | bytes) or not isinstance(args, Sequence):
        raise UsageError(f"args={args!r}: must be a tuple or list, such as ({args!r},)")
    for name, mapping in (("kwargs", kwargs), ("runtime_env", runtime_env)):
        if mapping is not None and not isinstance(mapping, Mapping):
            raise UsageError(f"{name}={mapping!r}: must be a dict")
    if processes is not None and processes_per_node != 1:
        raise UsageError(f"processes={processes} and processes_per_node={processes_per_node}: give one of them")
    for name, number, least in (("max_restarts", max_restarts, 0), ("min_nodes", min_nodes, 1)):
        if number is not None and (type(number) is not int or number < least):
            raise UsageError(f"{name}={number!r}: must be a whole number, {least} or more")
    if min_nodes is not None and not max_restarts:
        raise UsageError(
            f"min_nodes={min_nodes!r}: tells on how few nodes the world may be started again; give max_restarts"
        )
    if timeout_s is not None and (not isinstance(timeout_s, int | float) or not 0 < timeout_s < float("inf")):
        raise UsageError(f"timeout_s={timeout_s!r}: must be a number of seconds greater than 0")
    if world is not None and (not isinstance(world, str) or not world):
        raise UsageError(f"world={world!r}: must be a name")
