"""Runs inside ``ray start`` before it starts anything (Ray calls what RAY_START_HOOK names).

Ray starts more than its options let one leave out. What is changed here has no public name, so each change looks for
what it changes and leaves Ray as it is where that is not found: it then starts later, and not otherwise.
"""

from typing import Any


def without_client_server(parameters: Any, head: bool) -> None:
    """Leave out the server for ``ray://`` clients: it needs a fixed port and costs a second of CPU (FACTS R8)."""
    if head and hasattr(parameters, "ray_client_server_port"):
        parameters.ray_client_server_port = None


def without_dashboard(parameters: Any, head: bool) -> None:
    """Leave out the dashboard's process as well, and the wait for it before the raylet starts (FACTS R15).

    With ``--include-dashboard=false`` Ray starts it all the same, for its usage statistics, which are off (FACTS R24).
    """
    without_client_server(parameters, head)
    from ray._private import node

    kind: Any = node.Node
    if hasattr(kind, "start_api_server"):
        kind.start_api_server = lambda self, **options: None
