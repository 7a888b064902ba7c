"""``auto_ray_cluster()``: which cluster it is, and how this process becomes a driver of it."""

import logging
from collections.abc import Mapping, MutableMapping
from typing import Any

from eray import _driver_cluster as clusters
from eray._bringup import Site, step_spec
from eray._connection import Connection
from eray._core.access import RAY_ADDRESS
from eray._core.counted import counted
from eray._driver_cluster import RayInit
from eray._identity import identify
from eray._own_cluster import attach_own, find_node_file
from eray._ray import attach, foreign
from eray._ray.calls import find_coordinator
from eray._ray.driver import shared_cluster
from eray._ray.notices import say
from eray._ray.relayed import RelayedClient
from eray._slurm.environment import Mode
from eray.errors import ConnectionStateError, RayAttachError, UsageError

logger = logging.getLogger("eray.cluster_util")


def enter(
    site: Site, environ: MutableMapping[str, str], address: str | None, init: RayInit, *, start_workers: bool
) -> None:
    """Attach this process, which has joined no world, to the cluster that it means; start it where it is not there.

    Raises:
        ClusterError: it does not come up, or refuses this process.
        UsageError: ``address`` names none that eray takes.
    """
    mode, is_launched = site.slurm.mode, site.settings.run_dir is not None
    attached = attach.current_address() is not None
    address, named = _asked(address, environ)
    if address == "auto":
        raise UsageError(
            f"{named}{address!r} takes any Ray of this machine, also another user's; leave it out, or give the "
            "host:port that `eray env` prints"
        )
    if address is not None and "://" in address:
        raise UsageError(
            f"{named}{address!r} is for Ray's client, which serves no JAX process; give host:port of the GCS"
        )
    if address == "local":
        clusters.start_local(site, environ, init)
        environ.pop("RAY_ADDRESS", None)  # what follows in this process means the Ray that it has
    elif address is not None or mode is Mode.RAY_WORKER:
        foreign.attach(address, namespace=init.namespace, options=init.options, named=named)
        if address is not None:
            environ["RAY_ADDRESS"] = address
    elif is_launched or (mode is not Mode.STEP and not attached and site.slurm.job and find_node_file(site)):
        attach_own(site, environ, namespace=init.namespace, options=init.options)
    elif mode is Mode.STEP:
        place = identify(site, world=None, process_count=None, process_index=None, attached=False)
        if place.notice:
            say(place.notice)
        clusters.enter_step(site, environ, place, init, start_workers=start_workers)
    elif attached:
        logger.warning("this process has called ray.init() itself; auto_ray_cluster() keeps that Ray as it is")
        foreign.attach(None)
    else:
        if len(site.slurm.nodes) > 1:
            say(lone(site, "Ray is started on this machine alone"))
        clusters.start_local(site, environ, init)


def use_connection(
    connection: Connection,
    environ: MutableMapping[str, str],
    address: str | None,
    init: RayInit,
    *,
    start_workers: bool,
) -> None:
    """Let a process that has joined keep its Ray, in another namespace and with the caller's arguments where asked."""
    if isinstance(connection._client, RelayedClient):
        connection._client.attach()
    address, named = _asked(address, environ)
    if address == "local":
        raise UsageError(
            f"{named}{address!r} comes too late: jax.distributed was initialized before, and this process has the Ray "
            "of its world; leave it out"
        )
    if address is not None and address != attach.current_address():
        foreign.attach(address, named=named)  # an error names both, where they are two
    if not start_workers and len(connection.topology().nodes) > 1:
        logger.warning("start_workers=False comes too late: jax.distributed was initialized before, on all nodes")
    options = {name: value for name, value in init.options.items() if value is not None}
    if options or attach.current_namespace() != init.namespace:
        _attach_anew(connection, init.namespace, options)


def _attach_anew(connection: Connection, namespace: str, options: Mapping[str, Any]) -> None:
    address, index = attach.current_address(), connection.process_index
    if connection._link is None or address is None:
        raise ConnectionStateError(
            f"process {index} joined through a Ray that eray did not start, and cannot leave it for the namespace "
            f"{namespace!r}: call auto_ray_cluster() before jax.distributed is initialized"
        )
    attach.detach()
    attach.attach(address, namespace=namespace, node=connection.node.name, options=options, up_to_date=True)
    for client in (connection._client, connection.beside):
        if client is not None:
            client.handle = find_coordinator()


def require_none(site: Site, *, is_ours: bool) -> None:
    """Refuse where this process is attached to a Ray, but by joining its world (``is_ours``), or its job has one.

    Raises:
        RayAttachError: it names the cluster.
    """
    found, address, job = "", attach.current_address(), site.slurm.job
    if address is not None and not is_ours:
        found = f"this process is attached to the Ray at {address} already"
    elif job is not None and site.settings.run_dir is None:
        about = find_node_file(site) if site.slurm.mode is not Mode.STEP else _job_cluster(site)
        if about is not None:
            found = f"job {job.id} has a cluster already, at {about['gcs_address']}"
    if found:
        remedy = "call auto_ray_cluster() first and once, or without fail_if_cluster_already_initialized"
        raise RayAttachError(site.node, found, remedy)


def _job_cluster(site: Site) -> dict[str, Any] | None:
    """Return the cluster of ``eray up`` that the step's tasks would use."""
    return shared_cluster(step_spec(site, "tasks"))


def _asked(address: str | None, environ: Mapping[str, str]) -> tuple[str | None, str]:
    """Return the address that the caller or the environment asks for, and what messages call it."""
    named = "address=" if address is not None else RAY_ADDRESS
    return address or environ.get("RAY_ADDRESS") or None, named


def lone(site: Site, what: str) -> str:
    """Return the line for people that says ``what`` is not done here, for this process is alone, and why."""
    slurm = site.slurm
    if slurm.job is None:
        return f"{what}; this runs as one process"
    nodes = f" ({counted(len(slurm.nodes), 'node')})" if slurm.nodes else ""
    return (
        f"{what}; this is no task of a step of job {slurm.job.id}{nodes} and runs as one process; `srun` or `eray run` "
        "start several"
    )
