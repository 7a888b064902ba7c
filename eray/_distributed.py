"""``DistributedConfig``: what it means for this process, and ``jax.distributed`` without a coordinator of eray's."""

import os
from collections.abc import MutableMapping, Sequence
from dataclasses import replace

from eray._auto_ray import lone
from eray._bringup import Site, device_total
from eray._core.devices import Share
from eray._core.timing import Deadline
from eray._identity import read_site
from eray._io import clock, net
from eray._io.devices import read_hardware
from eray._io.reading import text_of
from eray._jax import cluster_env, runtime
from eray._ray.noted import recorder
from eray._ray.notices import say
from eray._slurm import rendezvous
from eray._slurm.environment import Mode
from eray._slurm.membership import foreign_error
from eray._slurm.variables import HOSTFILE
from eray._slurm.visibility import visible_tokens
from eray._start_jax import JAX_LATER_S, JaxStart, dial
from eray.errors import UsageError

JOIN_TIMEOUT_S = 1800.0
"""How long eFormer let the processes wait for each other."""


def adapted_site(environ: MutableMapping[str, str], ordinals: tuple[int, ...] | None = None) -> Site:
    """Return what the environment says, with eFormer's defaults: Ray knows the devices, and waits are long."""
    site = read_site(environ)
    settings = site.settings
    if ordinals is not None:
        settings = replace(settings, devices=",".join(map(str, ordinals)))
    if settings.ray_gpus is None:
        settings = replace(settings, ray_gpus=device_total(site, read_hardware().count))
    if not environ.get("ERAY_JOIN_TIMEOUT_S"):
        settings = replace(settings, join_timeout_s=JOIN_TIMEOUT_S)
    return replace(site, settings=settings)


def names_a_world(site: Site) -> bool:
    """Tell whether this process is one of a world: a task of a step, or one that eray starts."""
    mode, settings = site.slurm.mode, site.settings
    is_launched = settings.run_dir is not None and mode is not Mode.RAY_WORKER
    return settings.process_count is not None or mode is Mode.STEP or is_launched


def place_of(site: Site, num_processes: int | None, process_id: int | None) -> tuple[int, int]:
    """Return this process's count and index: the given ones, else what the environment says.

    Raises:
        UsageError: one is unknown, or they do not fit together.
    """
    settings, task = site.settings, site.slurm.task if rendezvous.is_task(site.environ) else None
    told = (task.process_count, task.process_index) if task is not None else (None, None)
    rows = (num_processes, process_id), (settings.process_count, settings.process_index), told
    count, index = (next((row[at] for row in rows if row[at] is not None), None) for at in (0, 1))
    if index is None and count == 1:
        index = 0
    for name, value in (("num_processes", count), ("process_id", index)):
        if value is None:
            raise UsageError(
                f"DistributedConfig has no {name}, and this is no task of a Slurm step that would tell: give it, or "
                "start the program by `srun` or `eray run`"
            )
        if isinstance(value, bool) or not isinstance(value, int):
            raise UsageError(f"DistributedConfig: {name}={value!r} must be a whole number")
    assert count is not None
    assert index is not None
    if not 0 <= index < count:
        raise UsageError(f"DistributedConfig: process_id={index} must be 0 or more and below num_processes={count}")
    return count, index


def ordinals_of(ids: int | Sequence[int] | None) -> tuple[int, ...] | None:
    """Return local device ids as a tuple.

    Raises:
        UsageError: they are not ordinals.
    """
    if ids is None:
        return None
    try:
        listed = (ids,) if isinstance(ids, int) else tuple(ids)
    except TypeError:
        listed = ()
    if not listed or any(isinstance(each, bool) or not isinstance(each, int) or each < 0 for each in listed):
        raise UsageError(f"local_device_ids={ids!r} must be ordinals, 0 or more, such as [0, 1]; None lets eray choose")
    if len(set(listed)) < len(listed):
        raise UsageError(f"local_device_ids={ids!r} names a device twice")
    return listed


def own_share(site: Site) -> Share | None:
    """Return this task's part of the devices, None where one task alone cannot know it.

    Raises:
        DevicePlanError: they do not divide among the node's tasks.
    """
    if not rendezvous.is_task(site.environ):
        return None
    return rendezvous.own_share(site.slurm, override=site.settings.devices, hardware_count=read_hardware().count)


def only_device(environ: MutableMapping[str, str], ids: Sequence[int] | None) -> int | None:
    """Return the only one of a task's devices, None where all that it sees are its own: JAX takes no list from a class.

    Raises:
        UsageError: they are some of those that it sees.
    """
    if ids is None or len(ids) == len(visible_tokens(environ) or ids):
        return None
    if len(ids) == 1:
        return ids[0]
    raise UsageError(
        f"this task has the devices {ids}, and JAX takes one or all of a cluster class: give "
        "jax.distributed.initialize() local_device_ids=eSlurmCluster.get_local_device_ids_for_process() too"
    )


def host_file(environ: MutableMapping[str, str]) -> str:
    """Return the text of SLURM_HOSTFILE, empty where there is none that can be read."""
    path = environ.get(HOSTFILE)
    return text_of(os.path.join(environ.get("SLURM_SUBMIT_DIR", ""), path)) if path else ""


def start_by_address(
    site: Site,
    environ: MutableMapping[str, str],
    address: str,
    place: tuple[int, int],
    ordinals: tuple[int, ...] | None,
) -> None:
    """Start ``jax.distributed`` at an address that the program gives.

    Raises:
        UsageError: the address is none, or its port is not free here, where process 0 serves JAX.
        JaxStateError: the program touched JAX before.
        JoinTimeoutError: process 0 does not answer.
    """
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise UsageError(f"coordinator_address={address!r} must be host:port, the port 1 to 65535")
    if ordinals is None and site.settings.run_dir is not None:
        raise UsageError(
            f"coordinator_address={address!r} under `eray run`: leave it out, then eray's coordinator chooses address "
            "and devices; or give local_device_ids too"
        )
    count, index = place
    share = own_share(site) if ordinals is None else None
    JaxStart(environ, recorder("program")).load()
    if share is not None and share.rule == "none" and not environ.get("JAX_PLATFORMS"):
        runtime.use_cpu_only()  # what Slurm did not allot is a neighbour's
    deadline = Deadline.after(site.settings.join_timeout_s, now=clock.monotonic())
    if index:
        dial(address, f"at {address}", deadline)
    elif not net.port_is_free(int(port)):
        raise UsageError(f"coordinator_address={address!r}: port {port} of this node is in use; choose another")
    runtime.initialize_alone(
        coordinator_address=address,
        process_count=count,
        process_index=index,
        local_device_ids=share.local_device_ids if share is not None else ordinals,
        method="deactivate",
        timeout_s=deadline.remaining_s(clock.monotonic()) + JAX_LATER_S,
        environ=environ,
        proxies_off=net.without_proxies(environ, [host.strip("[]")]),
    )


def start_by_jax(site: Site, environ: MutableMapping[str, str]) -> bool:
    """Start JAX where its own detection finds a cluster other than Slurm, else say that this is one process.

    Raises:
        ForeignLauncherError: another launcher started this process inside a Slurm step, and JAX cannot read it.
        JaxStateError: the program touched JAX before.
    """
    method = cluster_env.detected()
    if method is not None:
        JaxStart(environ, recorder("program")).load()
        runtime.initialize_alone(
            method=method,
            timeout_s=site.settings.join_timeout_s,
            environ=environ,
            proxies_off={"grpc_proxy": ""},  # for any host: the address is JAX's to find (FACTS J8)
        )
        return True
    if site.slurm.mode is Mode.FOREIGN_LAUNCHER:
        raise foreign_error(site.slurm)
    say(lone(site, "jax.distributed is not initialized: nothing is configured, and no cluster is around"))
    return False
