"""What only Ray's own actor can show: its name, its silence, its end, and the price of its imports."""

import os
import signal
import subprocess
import sys

import pytest
import ray

from eray._core.naming import COORDINATOR_NAME, NAMESPACE
from eray._ray.calls import find_coordinator
from eray._ray.client import CoordinatorClient
from eray._ray.creation import create_coordinator
from eray.errors import ClusterLostError


def create(job):
    return create_coordinator(
        node_id=ray.get_runtime_context().get_node_id(),
        namespace=NAMESPACE,
        name=COORDINATOR_NAME,
        snapshot_path=None,
        job=job,
    )


@pytest.fixture
def handle(local_ray):
    handle = create({"id": "42"})
    yield handle
    ray.kill(handle)


@pytest.mark.ray
def test_coordinator_is_found_by_its_name_and_made_once(handle):
    client = CoordinatorClient(handle)
    pid = client.ping()["pid"]
    assert CoordinatorClient(create({"id": "43"})).ping()["pid"] == pid
    assert CoordinatorClient(find_coordinator()).topology().job == {"id": "42"}
    assert find_coordinator(name="nobody") is None


@pytest.mark.ray
def test_driver_without_eray_reads_the_topology(handle):
    program = (
        "import json, sys\n"
        "sys.modules['eray'] = None  # as where it is not installed\n"
        "import ray\n"
        "ray.init(sys.argv[1], log_to_driver=False)\n"
        "actor = ray.get_actor('eray-coordinator', namespace='eray')\n"
        "print(json.dumps(ray.get(actor.topology.remote(), timeout=30)))\n"
    )
    address = ray.get_runtime_context().gcs_address
    found = subprocess.run(
        [sys.executable, "-c", program, address], cwd="/", capture_output=True, text=True, timeout=60
    )
    assert found.returncode == 0, found.stderr
    assert '"api_version": 1' in found.stdout


@pytest.mark.ray
def test_silent_coordinator_is_lost_within_the_deadline(handle):
    client = CoordinatorClient(handle)
    pid = client.ping()["pid"]
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(ClusterLostError, match="did not answer ping within 1 s"):
            client.ping(timeout_s=1.0)
    finally:
        os.kill(pid, signal.SIGCONT)
    assert client.ping()["pid"] == pid


@pytest.mark.ray
def test_coordinator_that_is_gone_is_lost_at_once(handle):
    client = CoordinatorClient(handle)
    client.ping()
    ray.kill(handle)

    def ping_until_it_is_gone():
        for _ in range(1000):  # Ray kills it a moment later
            client.ping(timeout_s=30.0)

    with pytest.raises(ClusterLostError):
        ping_until_it_is_gone()


def test_client_without_ray_never_starts_one():
    program = (
        "import ray\n"
        "from eray._ray.calls import find_coordinator\n"
        "from eray._ray.client import CoordinatorClient\n"
        "from eray.errors import ClusterLostError\n"
        "for call in (CoordinatorClient(object()).ping, find_coordinator):\n"
        "    try:\n"
        "        call()\n"
        "    except ClusterLostError as error:\n"
        "        print(error, ray.is_initialized())\n"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert found.stdout.count("Ray is not attached") == 2
    assert "True" not in found.stdout


@pytest.mark.parametrize(
    ("module", "heavy"),
    [
        ("eray._ray.client", ("jax", "numpy", "pydantic")),
        ("eray._ray.coordinator", ("jax", "numpy", "pandas", "aiohttp")),
    ],
)
def test_import_loads_nothing_heavy(module, heavy):
    program = f"import sys, {module}; print([name for name in {heavy} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert found.stdout.strip() == "[]"
