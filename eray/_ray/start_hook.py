"""Runs inside ``ray start`` before it starts anything (Ray calls what RAY_START_HOOK names).

Ray starts more than its options let one leave out. What is changed here has no public name, so each change looks for
what it changes and leaves Ray as it is where that is not found: it then starts later, and not otherwise.
"""

import inspect
import os
from subprocess import list2cmdline
from typing import Any

from eray._ray import quiet_agent


def without_client_server(parameters: Any, head: bool) -> None:
    """Leave out the server for ``ray://`` clients: it needs a fixed port and costs a second of CPU (FACTS R8)."""
    if head and hasattr(parameters, "ray_client_server_port"):
        parameters.ray_client_server_port = None


def with_dashboard(parameters: Any, head: bool) -> None:
    """Have the dashboard keep its own sockets with Ray's files: it leaves them behind, in TMPDIR, when it is ended."""
    without_client_server(parameters, head)
    from ray._private import services

    start: Any = getattr(services, "start_ray_process", None)
    directory = getattr(parameters, "temp_dir", None)
    if start is None or directory is None or "env_updates" not in inspect.signature(start).parameters:
        return

    def start_process(*args: Any, **options: Any) -> Any:
        call = inspect.signature(start).bind(*args, **options)
        if call.arguments.get("process_type") == "dashboard":
            call.arguments["env_updates"] = {**(call.arguments.get("env_updates") or {}), "TMPDIR": directory}
        return start(*call.args, **call.kwargs)

    services.start_ray_process = start_process


def without_dashboard(parameters: Any, head: bool) -> None:
    """Leave out the dashboard's process as well, and the wait for it before the raylet starts (FACTS R15).

    With ``--include-dashboard=false`` Ray starts it all the same, for its usage statistics, which are off (FACTS R24).
    """
    without_client_server(parameters, head)
    from ray._private import node

    kind: Any = node.Node
    if hasattr(kind, "start_api_server"):
        kind.start_api_server = lambda self, **options: None
    _with_quiet_agent()


def _with_quiet_agent() -> None:
    """Give the raylet an agent that costs nothing: Ray's takes a second of CPU, and the raylet waits for it."""
    try:
        from ray import _raylet
        from ray._private import services, utils

        names = ("METRICS_AGENT_PORT_NAME", "METRICS_EXPORT_PORT_NAME", "DASHBOARD_AGENT_LISTEN_PORT_NAME")
        ports = tuple(getattr(_raylet, name) for name in names)
        start, agent = services.start_ray_process, os.path.join(services.RAY_PATH, "dashboard", "agent.py")
        utils.get_dashboard_dependency_error  # noqa: B018
        os.close(os.pidfd_open(os.getpid()))
    except (ImportError, AttributeError, OSError):  # another Ray, or a kernel before 5.3
        return
    if ports != quiet_agent.PORTS or list2cmdline([quiet_agent.__file__]) != quiet_agent.__file__:
        return  # names that we do not know, or a path that would need quotes

    def start_process(command: list[str], *args: Any, **options: Any) -> Any:
        return start([_quieted(word, agent) for word in command], *args, **options)

    services.start_ray_process = start_process
    # Loads aiohttp and more only to see that they are there; what it is asked for is how to start Ray's own agent.
    utils.get_dashboard_dependency_error = lambda: None


def _quieted(word: str, agent: str) -> str:
    if not word.startswith("--dashboard_agent_command=") or "--session-dir=" not in word or "--node-id=" not in word:
        return word
    return word.replace(agent, quiet_agent.__file__)
