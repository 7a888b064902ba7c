"""Runs inside ``ray start`` before it starts anything (Ray calls what RAY_START_HOOK names).

Ray starts more than its options let one leave out. What is changed here has no public name, so each change looks for
what it changes and leaves Ray as it is where that is not found: it then starts later, and not otherwise.
"""

import inspect
import os
from collections.abc import Mapping
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
    _with_quiet_agents()


def _with_quiet_agents() -> None:
    """Give the raylet agents that cost nothing: Ray's take 1.5 s of CPU, and the raylet waits for their ports."""
    try:
        from ray import _raylet
        from ray._private import services, utils

        kinds = ("METRICS_AGENT", "METRICS_EXPORT", "DASHBOARD_AGENT_LISTEN", "RUNTIME_ENV_AGENT")
        ports = tuple(getattr(_raylet, f"{kind}_PORT_NAME") for kind in kinds)
        start, agent = services.start_ray_process, os.path.join(services.RAY_PATH, "dashboard", "agent.py")
        env_agent = os.path.join(services.RAY_PATH, "_private", "runtime_env", "agent", "main.py")
        utils.get_dashboard_dependency_error  # noqa: B018
        os.close(os.pidfd_open(os.getpid()))
    except (ImportError, AttributeError, OSError):  # another Ray, or a kernel before 5.3
        return
    if ports != (*quiet_agent.PORTS, quiet_agent.ENV_PORT):
        return  # names that we do not know
    if any(list2cmdline([path]) != path for path in (quiet_agent.__file__, env_agent)):
        return  # a path that would need quotes
    theirs = {
        "--dashboard_agent_command=": (agent, quiet_agent.__file__),
        "--runtime_env_agent_command=": (env_agent, f"{quiet_agent.__file__} {env_agent}"),
    }

    def start_process(command: list[str], *args: Any, **options: Any) -> Any:
        return start([_quieted(word, theirs) for word in command], *args, **options)

    services.start_ray_process = start_process
    # Loads aiohttp and more only to see that they are there; what it is asked for is how to start Ray's own agent.
    utils.get_dashboard_dependency_error = lambda: None


def _quieted(word: str, theirs: Mapping[str, tuple[str, str]]) -> str:
    for option, (path, ours) in theirs.items():
        if word.startswith(option) and "--session-dir=" in word and "--node-id=" in word:
            return word.replace(path, ours)
    return word
