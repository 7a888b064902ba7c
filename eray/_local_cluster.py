"""A cluster of this machine alone for a driver that has none: its supervisor and Ray end with the driver."""

import atexit
from collections.abc import MutableMapping
from dataclasses import replace
from typing import Any

from eray._bringup import Site, local_spec
from eray._core.timing import Deadline
from eray._io import clock
from eray._io.link import Link
from eray._ray import attach
from eray._ray.commands import driver_variables
from eray._ray.notices import say
from eray._reach import HEAD_FIRST_S, await_word, reach

DRIVER = "driver"


def start_local(site: Site, environ: MutableMapping[str, str]) -> str:
    """Start Ray on this machine, with all its devices, attach this process as its driver, and return the address.

    Raises:
        ClusterError: it does not come up.
    """
    timeout_s = site.settings.cluster_timeout_s
    spec = local_spec(site, "up")  # Ray owns the devices, as under `eray up`; it lives as long as its one client
    spec = replace(spec, purpose="tasks", dashboard=site.settings.dashboard or False, log_monitor=True)
    link = reach(spec, environ, None, timeout_s)
    hello: dict[str, Any] = {"world": DRIVER, "process_index": 0, "process_count": 1, "indexes_on_node": None}
    try:
        link.send({"type": "hello", **hello})
        deadline = Deadline.after(timeout_s + HEAD_FIRST_S, now=clock.monotonic())
        ready = await_word(link, "ready", spec.node, deadline, say)
        environ.update(driver_variables(ready["auth"], ready["token_path"]))
        address = str(ready["gcs_address"])
        attach.attach(address, node=spec.node)
    except BaseException:
        link.leave()
        raise
    link.watch(_hear, lambda: None)
    atexit.register(_leave, link)
    return address


def _hear(message: dict[str, Any]) -> None:
    if message["type"] in ("failed", "progress"):
        say(str(message.get("cause") or message.get("text")))


def _leave(link: Link) -> None:
    attach.detach()
    link.leave()
