"""eFormer's calls on a laptop, and what JAX makes of eray's class."""

import json
import socket
from pathlib import Path
from typing import Any

import pytest
from laptop import PLAIN_RAY, Laptop, result_of
from slurm_task import TASK

pytestmark = [pytest.mark.ray, pytest.mark.jax]
ONE_GPU = TASK | {"SLURM_NTASKS": "4", "SLURM_GPUS_ON_NODE": "2", "CUDA_VISIBLE_DEVICES": "3"}

BATCH = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "node[01-02]", "SLURM_NTASKS": "4", "SLURM_PROCID": "0"}
ALONE = "this is no task of a step of job 7{} and runs as one process; `srun` or `eray run` start several\n"

OLD_ORDER = """
import json, os
from pathlib import Path
from eray.cluster_util import DistributedConfig, RayClusterConfig
DistributedConfig().initialize()
RayClusterConfig().initialize()
RayClusterConfig().initialize()
import jax, ray, eray
node = ray.get(eray.coordinator().topology.remote())["nodes"][0]
namespace = ray.get_runtime_context().namespace
(home,) = Path(os.environ["ERAY_TMPDIR"]).glob("eray-*/*/node.json")
access = json.loads(home.read_text())
private = [access["auth"], access["dashboard"], home.parent.stat().st_mode & 0o777]
one = [jax.process_count(), namespace, node["ray_node_id"] == ray.nodes()[0]["NodeID"]]
print("result: " + json.dumps([*one, *private]))
"""

SIZED = """
import json, ray
from eray.cluster_util import auto_ray_cluster
auto_ray_cluster(num_cpus=1, resources={"mine": 2}, object_store_memory=2**27, include_dashboard=False)
try:
    auto_ray_cluster(fail_if_cluster_already_initialized=True)
except RuntimeError as error:
    refused = str(error)
found = ray.cluster_resources()
print("result: " + json.dumps([found["CPU"], found["mine"], found["object_store_memory"], refused]))
"""

IN_JAX = """
import json, os
from jax._src.clusters import ClusterEnv
before = list(ClusterEnv._cluster_types)
import eray, eray.cluster_util
import eray._jax.cluster_env as env
seen = [list(ClusterEnv._cluster_types) == before]
present = [getattr(each, "name", "") for each in before if each.is_env_present()]
find = lambda method: ClusterEnv.auto_detect_unset_distributed_params(None, None, None, None, method, 10)
own = find(None)
name = eray.eSlurmCluster.register_with_jax()
eray.eSlurmCluster.register_with_jax()
seen += [len(ClusterEnv._cluster_types) - len(before), find(None) == own, find(name)]
seen += [env.detected(), "mpi4py" in present]
print("result: " + json.dumps(seen))
"""


@pytest.mark.parametrize(
    ("env", "jax_says", "ray_says"),
    [
        ({}, "this runs as one process\n", None),
        (BATCH, ALONE.format(" (2 nodes)"), ALONE.format(" (2 nodes)")),  # bug-012, bug-013
        pytest.param({"SLURM_JOB_ID": "7"}, ALONE.format(""), None, marks=pytest.mark.full),  # bug-011
    ],
    ids=["laptop", "batch", "ssh"],
)
def test_old_order_of_calls_is_one_process_with_a_ray_of_its_own(
    laptop: Laptop, env: dict[str, str], jax_says: str, ray_says: str | None
) -> None:
    result = laptop.python("-c", OLD_ORDER, **env).wait(60)
    assert result.returncode == 0, result.output
    *one, auth, dashboard, mode = result_of(result)
    assert one == [1, "eray-executor", True]
    assert (auth, dashboard, mode) == ("token", None, 0o700)
    assert f"nothing is configured, and no cluster is around; {jax_says}" in result.stderr
    assert (ray_says is None) is ("Ray is started on this machine alone" not in result.stderr)
    assert f"Ray is started on this machine alone; {ray_says}" in result.stderr or ray_says is None
    assert "auto_ray_cluster() was called before; this call is ignored" in result.stderr


GIVEN = """
import json, sys
from eray.cluster_util import DistributedConfig
DistributedConfig(**json.loads(sys.argv[1])).initialize()
DistributedConfig().initialize()
import jax
print("result: " + json.dumps([jax.process_index(), jax.process_count(), len(jax.devices())]))
"""


@pytest.mark.parametrize("way", ["address", "Open MPI"])
def test_two_processes_that_neither_slurm_nor_eray_started(laptop: Laptop, way: str) -> None:
    proxies = dict.fromkeys(["http_proxy", "https_proxy"], "http://127.0.0.1:9")  # bug-028, FACTS J8
    port, runs = port_of_jax_s_range(), []
    for index in (1, 0):
        config: dict[str, Any] = {}
        env = proxies | {"OMPI_MCA_orte_hnp_uri": f"{(port - 61440) * 4096}.0;tcp://127.0.0.1:9"}
        env |= {"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": str(index), "OMPI_COMM_WORLD_LOCAL_RANK": "0"}
        if way == "address":
            config = {"coordinator_address": f"127.0.0.1:{port}", "num_processes": 2, "process_id": index}
            env = proxies
        runs.append(laptop.python("-c", GIVEN, json.dumps(config), **env))
    for index, run in zip((1, 0), runs, strict=True):
        result = run.wait(60)
        assert result.returncode == 0, result.output
        assert result_of(result) == [index, 2, 2]
        assert "jax.distributed is initialized already" in result.stderr


def test_port_that_is_in_use_is_named_before_jax_meets_it(laptop: Laptop) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:  # bug-033: JAX dies of it, FACTS J1
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        config = {"coordinator_address": address, "num_processes": 1, "process_id": 0}
        result = laptop.python("-c", GIVEN, json.dumps(config)).wait(60)
    assert result.returncode == 2, result.output
    assert f"coordinator_address={address!r}: port {address.rpartition(':')[2]} of this node is in use" in result.stderr


def test_process_0_that_does_not_answer_is_named(laptop: Laptop) -> None:
    config = {"coordinator_address": "127.0.0.1:9", "num_processes": 2, "process_id": 1}
    result = laptop.python("-c", GIVEN, json.dumps(config), ERAY_JOIN_TIMEOUT_S="1").wait(60)
    assert result.returncode == 5, result.output  # JAX would abort: FACTS J1
    assert "at 127.0.0.1:9" in result.stderr.splitlines()[-1]


def port_of_jax_s_range() -> int:
    """Return a port that is free now, of those that JAX makes from the id of an Open MPI job."""
    for port in range(61440, 65536):
        try:
            socket.create_server(("0.0.0.0", port)).close()
        except OSError:
            continue
        return port
    raise AssertionError("no port from 61440 to 65535 is free")


BY_ADDRESS = """
import json, os, sys
from eray.cluster_util import DistributedConfig, auto_ray_cluster
auto_ray_cluster(*sys.argv[1:])
DistributedConfig(num_processes=1, process_id=0).initialize()
import eray, jax, ray
worlds = ray.get(eray.coordinator().topology.remote())["worlds"]
is_known = os.getpid() in [each["pid"] for world in worlds for each in world["processes"]]
print("result: " + json.dumps([ray.get_runtime_context().gcs_address, is_known, jax.process_count()]))
"""


@pytest.mark.parametrize(
    ("argument", "variable", "is_plain"),
    [
        ("plain", "127.0.0.1:9", True),
        pytest.param(None, "plain", True, marks=pytest.mark.full),
        pytest.param("local", "127.0.0.1:9", False, marks=pytest.mark.full),
        pytest.param(None, "local", False, marks=pytest.mark.full),
    ],
)
def test_ray_is_the_argument_s_then_ray_address_s_also_for_what_follows(
    laptop: Laptop, plain_ray: str, argument: str | None, variable: str, is_plain: bool
) -> None:
    argument, variable = (plain_ray if each == "plain" else each for each in (argument, variable))
    env = TASK | PLAIN_RAY | {"JAX_PLATFORMS": "cpu"} if is_plain else {}
    run = laptop.python("-c", BY_ADDRESS, *([argument] if argument else []), **env, RAY_ADDRESS=variable)
    result = run.wait(60)
    assert result.returncode == 0, result.output
    found, is_known, count = result_of(result)
    assert ((found == plain_ray), is_known, count) == (is_plain, True, 1)


LATE = """
from eray.cluster_util import DistributedConfig, RayClusterConfig
DistributedConfig().initialize()
RayClusterConfig("local").initialize()
"""


def test_local_ray_beside_that_of_the_world_is_refused(laptop: Laptop) -> None:
    result = laptop.eray("run", "-n", "1", "--", "python", "-c", LATE).wait(60)
    assert result.returncode == 2, result.output
    assert "address='local' comes too late: jax.distributed was initialized before" in result.stderr


def test_ray_init_s_sizes_are_the_local_ray_s(laptop: Laptop) -> None:
    result = laptop.python("-c", SIZED).wait(60)
    assert result.returncode == 0, result.output
    *sizes, refused = result_of(result)
    assert sizes == [1.0, 2.0, float(2**27)]
    assert "this process is attached to the Ray at" in refused


def test_jax_asks_only_when_it_is_told_to(laptop: Laptop, tmp_path: Path) -> None:
    (tmp_path / "mpi4py.py").write_text("raise ImportError('no MPI on this machine')")
    result = laptop.python("-c", IN_JAX, **ONE_GPU, PYTHONPATH=str(tmp_path)).wait(60)
    assert result.returncode == 0, result.output
    seen: list[Any] = result_of(result)
    unchanged, more, same, found, other, has_mpi4py = seen
    assert (unchanged, more, same) == (True, 1, True), "importing eray, and registering, leave JAX's detection alone"
    assert found == ["node01:61447", 4, 3, None], "all that it sees is its own"
    assert has_mpi4py
    assert other is None, "Slurm is eray's to read, and mpi4py is no cluster"
