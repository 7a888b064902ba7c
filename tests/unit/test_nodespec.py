from dataclasses import replace

import pytest

from eray._core.nodespec import NodeSpec, WorldSpec
from eray._ray.attach import adopt
from eray._ray.commands import start_command
from eray._ray.world_process import child_environment

WORLD = WorldSpec("main", ("python", "train.py"), (2, 1), 2)
SPEC = NodeSpec(
    purpose="run",
    cluster="rig",
    key="12",
    restart=1,
    job="12",
    node_rank=1,
    node="n2",
    nodes=("n1", "n2"),
    head_hosts=("n1",),
    ports=(24001, 24002),
    token="t" * 64,
    fingerprint="abcd",
    auth="token",
    tmpdir="/tmp",
    run_dir="/tmp/eray-1/12r1",
    ray_dir="/tmp/eray-1/12r1/ray",
    state_dir="/home/u/.eray",
    interface=None,
    alias=None,
    cpus=8,
    memory_bytes=1000,
    ray_gpus=0,
    visible=("GPU-1", "3"),
    gpus_on_node=4,
    hardware_count=None,
    dashboard=False,
    cluster_timeout_s=300.0,
    node_timeout_s=5.0,
    world=WORLD,
)


def no_port() -> int:
    raise AssertionError("there is no dashboard that needs a port")


def command_of(spec, environ, gcs_address=None):
    """Return the command of a node whose dashboard, if it has one, gets port 40001."""
    return start_command(
        spec,
        environ,
        address="10.0.0.1",
        gcs_address=gcs_address,
        object_store_bytes=3,
        free_port=lambda: 40001,
    )


def test_spec_survives_json():
    assert NodeSpec.from_json(SPEC.to_json()) == SPEC


def test_layout_is_dense_by_node_rank():
    assert WORLD.process_count == 3
    assert WORLD.layout(SPEC.nodes) == [(0, 0, 2, "n1"), (0, 1, 2, "n1"), (1, 0, 1, "n2")]


def test_start_command_of_the_head():
    command = start_command(
        SPEC, {"A": "1"}, address="10.0.0.1", gcs_address=None, object_store_bytes=300, free_port=no_port
    )
    assert {"--head", "--port=0", "--memory=700", "--no-monitor", "--include-dashboard=false"} <= set(command.argv)
    assert "--dashboard-host=10.0.0.1" in command.argv
    assert command.env["A"] == "1"
    assert command.env["RAY_AUTH_MODE"] == "token"
    assert command.env["RAY_AUTH_TOKEN_PATH"] == "/tmp/eray-1/12r1/token"


def test_start_command_never_holds_the_token():
    command = start_command(
        SPEC, {}, address="10.0.0.1", gcs_address="10.0.0.1:6", object_store_bytes=3, free_port=no_port
    )
    assert "--address=10.0.0.1:6" in command.argv
    assert not any(SPEC.token in text for text in (*command.argv, *command.env.values()))


def test_dashboard_without_authentication_is_for_this_node_alone():
    command = command_of(replace(SPEC, auth="disabled", dashboard=True), {})
    assert "--dashboard-host=127.0.0.1" in command.argv
    assert command.env["RAY_AUTH_MODE"] == "disabled"


@pytest.mark.parametrize(
    ("gcs_address", "environ", "port"),
    [
        (None, {}, "40001"),
        (None, {"DASHBOARD_METRIC_PORT": "44227"}, "40001"),
        ("10.0.0.1:6", {}, None),
    ],
)
def test_metrics_of_two_clusters_on_a_node_have_ports_of_their_own(gcs_address, environ, port):
    command = command_of(replace(SPEC, dashboard=True), environ, gcs_address)
    assert "--metrics-export-port=0" in command.argv
    assert command.env.get("DASHBOARD_METRIC_PORT") == port


@pytest.mark.parametrize(
    ("dashboard", "environ", "interval"),
    [
        (False, {}, "0"),
        (False, {"RAY_task_events_report_interval_ms": "500"}, "500"),
        (True, {}, None),
        (True, {"RAY_task_events_report_interval_ms": "500"}, "500"),
    ],
)
def test_task_events_are_recorded_for_a_dashboard_or_by_the_users_wish(dashboard, environ, interval):
    start = command_of(replace(SPEC, dashboard=dashboard), environ)
    drivers = dict(environ)
    adopt(drivers, {}, has_dashboard=dashboard)
    for env in (start.env, drivers):
        assert env.get("RAY_task_events_report_interval_ms") == interval
        assert env["RAY_raylet_client_connect_timeout_milliseconds"] == "50"


def test_child_environment_names_the_process_and_its_devices():
    env = child_environment(SPEC, WORLD, {"PATH": "/bin"}, generation=1, process_index=2, local_index=1)
    assert (env["ERAY_WORLD"], env["ERAY_PROCESS_INDEX"], env["ERAY_PROCESS_COUNT"]) == ("main", "2", "3")
    assert env["ERAY_DEVICES"] == "2,3"
    assert env["JAX_NUM_CPU_DEVICES"] == "2"
    assert env["PATH"].endswith(":/bin")


def test_child_environment_keeps_what_the_user_decided():
    flags = "--xla_force_host_platform_device_count=3"
    env = child_environment(SPEC, WORLD, {"XLA_FLAGS": flags, "ERAY_DEVICES": "own"}, 1, 0, 0)
    assert "JAX_NUM_CPU_DEVICES" not in env
    assert (env["XLA_FLAGS"], env["ERAY_DEVICES"]) == (flags, "own")


def test_child_environment_has_no_secret_and_nothing_of_another_cluster():
    others = {"RAY_AUTH_TOKEN": "t", "RAY_ADDRESS": "h:1", "RAY_API_SERVER_ADDRESS": "http://h:2"}
    kept = child_environment(SPEC, WORLD, {"ERAY_SECRET": "s" * 32, **others}, 1, 0, 0)
    assert {"ERAY_SECRET", *others}.isdisjoint(kept)
