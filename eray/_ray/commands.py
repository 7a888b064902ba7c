"""What starts one Ray node, as data. Imports no ray.

Options and costs as measured with Ray 2.60 (docs/decisions): without the autoscaler's monitor, the log monitor and
the dashboard a raylet is up 3.5 s earlier; the client server and the workers that Ray starts ahead cost a second each.
"""

import os
import shlex
import sys
from collections.abc import Callable, Mapping

from eray._core.command import Command
from eray._core.naming import LOOPBACK
from eray._core.nodespec import NodeSpec

START_HOOK = "eray._ray.start_hook"
DASHBOARD_METRICS = "DASHBOARD_METRIC_PORT"  # must be the port itself: of 0 Ray would tell others to ask port 0


def start_command(
    spec: NodeSpec,
    environ: Mapping[str, str],
    *,
    address: str,
    gcs_address: str | None,
    object_store_bytes: int,
    free_port: Callable[[], int],
) -> Command:
    """Return the ``ray start`` that stays in the foreground with its node.

    Args:
        spec: the node and its cluster.
        environ: the environment that Ray's processes inherit, already without the task's ranks.
        address: this node's own address.
        gcs_address: where the head's GCS listens, None for the head itself.
        object_store_bytes: size of the object store; what is left of the node's memory is for tasks.
        free_port: names a port for the metrics of the dashboard itself, which Ray would have at 44227 in every cluster.
    """
    argv = [sys.executable, "-P", "-m", "eray._ray.ray_start", "start", "--block", "--log-color=false"]
    argv += ["--disable-usage-stats"]
    if gcs_address is None:
        argv += ["--head", "--port=0", f"--dashboard-host={address if spec.auth == 'token' else LOOPBACK}"]
        argv += ["--dashboard-port=0", f"--include-dashboard={str(spec.dashboard).lower()}", "--no-monitor"]
    else:
        argv += [f"--address={gcs_address}"]
    argv += [
        f"--node-ip-address={address}",
        f"--temp-dir={spec.ray_dir}",
        f"--include-log-monitor={str(spec.dashboard or spec.log_monitor).lower()}",
        "--dashboard-agent-listen-port=0",
        "--metrics-export-port=0",
        "--min-worker-port=0",
        "--max-worker-port=0",
        f"--num-cpus={spec.cpus}",
        f"--num-gpus={spec.ray_gpus}",
        f"--object-store-memory={object_store_bytes}",
        f"--labels=eray.node-rank={spec.node_rank},eray.cluster={spec.key},eray.restart={spec.restart}",
    ]
    if spec.memory_bytes is not None:
        argv.append(f"--memory={max(spec.memory_bytes - object_store_bytes, 0)}")
    argv += spec.ray_options
    hook = "with_dashboard" if spec.dashboard else "without_dashboard"
    own = {
        "RAY_START_HOOK": f"{START_HOOK}.{hook}",
        # The driver of a Ray Job finds the `python` that runs eray, also when its environment is not activated.
        "PATH": os.pathsep.join([os.path.dirname(sys.executable), environ.get("PATH", os.defpath)]),
    }
    if spec.dashboard and gcs_address is None:
        own[DASHBOARD_METRICS] = str(free_port())
    inherited = {**ray_defaults(has_dashboard=spec.dashboard), **environ}
    return Command(tuple(argv), {**inherited, **ray_variables(spec), **_NODE_VARIABLES, **own})


def ray_variables(spec: NodeSpec) -> dict[str, str]:
    """Return what every Ray process and driver of this cluster needs in its environment (FACTS R2, R26)."""
    return driver_variables(spec.auth, spec.token_path)


def driver_variables(auth: str, token_path: str) -> dict[str, str]:
    """Return what a driver of a cluster needs (FACTS R19)."""
    return auth_variables(auth, token_path) | {"RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0"}


def ray_defaults(*, has_dashboard: bool) -> dict[str, str]:
    """Return what Ray's processes and drivers have in their environment unless it says otherwise."""
    return _LATER_DEFAULTS | _QUICK_RETRIES | ({} if has_dashboard else _NO_TASK_EVENTS)


def export_lines(
    gcs_address: str, dashboard: str | None, auth: str, token_path: str | None, token: str | None = None
) -> list[str]:
    """Return what a shell needs to reach a cluster, and no other, with Ray's own commands.

    The token itself stands there only where no process on this machine holds it under a path.
    """
    variables = driver_variables(auth, token_path or "") | {"RAY_ADDRESS": gcs_address}
    if token_path is None and auth != "disabled":
        del variables["RAY_AUTH_TOKEN_PATH"]
        variables["RAY_AUTH_TOKEN"] = token or ""
    if dashboard:
        variables["RAY_API_SERVER_ADDRESS"] = f"http://{dashboard}"
    unset = [name for name in ("RAY_API_SERVER_ADDRESS", "RAY_AUTH_TOKEN") if name not in variables]
    lines = [f"export {name}={shlex.quote(value)}" for name, value in variables.items()]
    return [*([f"unset {' '.join(unset)}"] if unset else []), *lines]


def auth_variables(auth: str, token_path: str) -> dict[str, str]:
    """Return Ray's authentication variables; the mode is always explicit, for half of Ray guesses it."""
    return (
        {"RAY_AUTH_MODE": "disabled"}
        if auth == "disabled"
        else {
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN_PATH": token_path,
        }
    )


_QUICK_RETRIES = {
    "RAY_raylet_client_connect_timeout_milliseconds": "50",
    "RAY_raylet_client_num_connect_attempts": "200",
}
"""A raylet now and then (1 start of 22) dials its own object store before that listens, and came again after 1 s."""

_LATER_DEFAULTS = {"RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
"""What later versions of Ray do unless told otherwise; earlier ones warn of the change in every driver."""

_NO_TASK_EVENTS = {"RAY_task_events_report_interval_ms": "0"}
"""Events are for the dashboard, and whoever records them needs 0.25 s more to leave Ray (docs/decisions/0004)."""

_NODE_VARIABLES = {
    "RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S": "0",
    "RAY_prestart_worker_first_driver": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DISABLE_IMPORT_WARNING": "1",
}
