"""A driver's way into a cluster that ends with the programs it serves: this machine's own, or that of its step.

The supervisor of this node is started where this process is the first to ask for it.
"""

import atexit
import json
import os
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field, replace
from typing import Any

from eray._bringup import Site, local_spec
from eray._core.naming import NAMESPACE
from eray._core.nodespec import NodeSpec
from eray._core.timing import Deadline
from eray._identity import Identity
from eray._io import clock
from eray._io.link import CLEARED_S, Link
from eray._ray import attach
from eray._ray.commands import driver_variables
from eray._ray.notices import say
from eray._reach import HEAD_FIRST_S, await_word, reach
from eray.errors import UsageError

DRIVER = "driver"


@dataclass(frozen=True)
class RayInit:
    """How this process becomes a driver: its namespace, and the caller's other arguments for ``ray.init``."""

    namespace: str = NAMESPACE
    options: Mapping[str, Any] = field(default_factory=dict)


def start_local(site: Site, environ: MutableMapping[str, str], init: RayInit | None = None) -> str:
    """Start Ray on this machine, with all its devices, attach this process as its driver, and return the address.

    What ``init`` says of the size of the Ray that it starts (``num_cpus``, ``num_gpus``, ``resources``,
    ``object_store_memory``, ``include_dashboard``) shapes the node.

    Raises:
        ClusterError: it does not come up.
        UsageError: a size is not one.
    """
    init = init or RayInit()
    spec = local_spec(site, "up")  # Ray owns the devices, as under `eray up`; it lives as long as its one client
    spec = replace(spec, purpose="tasks", dashboard=site.settings.dashboard or False, log_monitor=True)
    spec, options = _shaped(spec, init.options)
    here = Identity(DRIVER, None, process_index=0, process_count=1)
    return _enter(site, environ, here, spec, replace(init, options=options))


def enter_step(
    site: Site, environ: MutableMapping[str, str], identity: Identity, init: RayInit, *, start_workers: bool
) -> str:
    """Attach this process as a driver to the cluster of its step, with all its nodes, and return the address.

    The cluster lives until every task that came has left. Without ``start_workers`` only the head has CPUs and devices.

    Raises:
        ClusterError: it does not come up.
    """
    assert identity.spec is not None
    spec = identity.spec()
    if spec.node_rank and not start_workers:
        spec = replace(spec, ray_gpus=0, ray_options=("--num-cpus=0",))
    return _enter(site, environ, identity, spec, init)


def _enter(site: Site, environ: MutableMapping[str, str], identity: Identity, spec: NodeSpec, init: RayInit) -> str:
    timeout_s = site.settings.cluster_timeout_s
    link = reach(spec, environ, identity.step_cpus, timeout_s)
    try:
        link.send(identity.hello)
        deadline = Deadline.after(timeout_s + HEAD_FIRST_S, now=clock.monotonic())
        welcome = await_word(link, "welcome", spec.node, deadline, say)
        ready = await_word(link, "ready", spec.node, deadline, say)
        attach.adopt(environ, driver_variables(ready["auth"], ready["token_path"]))
        address = str(ready["gcs_address"])
        attach.attach(address, node=spec.node, namespace=init.namespace, options=init.options)
    except BaseException:
        link.leave()
        raise
    link.watch(_hear, lambda: None)
    # With the last task of the head's node Slurm ends its Ray, which the other nodes' tasks use still (FACTS S15).
    patience_s = site.settings.drain_timeout_s if welcome["is_head"] and len(spec.nodes) > 1 else CLEARED_S
    atexit.register(_leave, link, patience_s, os.getpid())
    return address


def _shaped(spec: NodeSpec, options: Mapping[str, Any]) -> tuple[NodeSpec, dict[str, Any]]:
    """Return the node as ``ray.init``'s arguments size it, and the arguments that are left for the driver."""
    rest = {name: value for name, value in options.items() if value is not None}
    more = [
        f"--{name.replace('_', '-')}={_whole(name, rest.pop(name))}"
        for name in ("num_cpus", "num_gpus", "object_store_memory")
        if name in rest
    ]
    if "resources" in rest:
        try:
            more.append(f"--resources={json.dumps(rest.pop('resources'))}")
        except TypeError as exc:
            raise UsageError(f"resources={options['resources']!r} must map names to numbers: {exc}") from None
    dashboard = rest.pop("include_dashboard", spec.dashboard)
    return replace(spec, dashboard=bool(dashboard), ray_options=tuple(more)), rest


def _whole(argument: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0 or value % 1:
        raise UsageError(f"{argument}={value!r} must be a whole number, 0 or more")
    return int(value)


def _hear(message: dict[str, Any]) -> None:
    if message["type"] in ("failed", "progress"):
        say(str(message.get("cause") or message.get("text")))


def _leave(link: Link, patience_s: float, pid: int) -> None:
    if os.getpid() == pid:  # a fork's copy of the line is its parent's
        attach.detach()
        link.leave(patience_s)
