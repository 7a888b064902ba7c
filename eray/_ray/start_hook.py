"""Runs inside ``ray start`` before it starts anything (Ray calls what RAY_START_HOOK names)."""

from typing import Any


def without_client_server(parameters: Any, head: bool) -> None:
    """Leave out the server for ``ray://`` clients: it needs a fixed port and costs a second of CPU (FACTS R8).

    No option of ``ray start`` does that. Where Ray renames the field, the assignment is without effect and Ray
    starts its client server on 10001, as always.
    """
    if head and hasattr(parameters, "ray_client_server_port"):
        parameters.ray_client_server_port = None
