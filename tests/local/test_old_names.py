"""eFormer's calls on a laptop, and what JAX makes of eray's class."""

from typing import Any

import pytest
from laptop import Laptop, result_of
from slurm_task import TASK

pytestmark = [pytest.mark.ray, pytest.mark.jax]
ONE_GPU = TASK | {"SLURM_NTASKS": "4", "SLURM_GPUS_ON_NODE": "2", "CUDA_VISIBLE_DEVICES": "3"}

OLD_ORDER = """
import json
from eray.cluster_util import DistributedConfig, RayClusterConfig
DistributedConfig().initialize()
RayClusterConfig().initialize()
RayClusterConfig().initialize()
import jax, ray, eray
node = ray.get(eray.coordinator().topology.remote())["nodes"][0]
namespace = ray.get_runtime_context().namespace
print("result: " + json.dumps([jax.process_count(), namespace, node["ray_node_id"] == ray.nodes()[0]["NodeID"]]))
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
find = lambda method: ClusterEnv.auto_detect_unset_distributed_params(None, None, None, None, method, 10)
own = find(None)
name = eray.eSlurmCluster.register_with_jax()
eray.eSlurmCluster.register_with_jax()
seen += [len(ClusterEnv._cluster_types) - len(before), find(None) == own, find(name), env.detected()]
print("result: " + json.dumps(seen))
"""


def test_old_order_of_calls_is_one_process_with_a_ray_of_its_own(laptop: Laptop) -> None:
    result = laptop.python("-c", OLD_ORDER).wait(60)
    assert result.returncode == 0, result.output
    assert result_of(result) == [1, "eray-executor", True]
    assert "no cluster is around; this runs as one process" in result.stderr
    assert "auto_ray_cluster() was called before; this call is ignored" in result.stderr


def test_ray_init_s_sizes_are_the_local_ray_s(laptop: Laptop) -> None:
    result = laptop.python("-c", SIZED).wait(60)
    assert result.returncode == 0, result.output
    *sizes, refused = result_of(result)
    assert sizes == [1.0, 2.0, float(2**27)]
    assert "this process is attached to the Ray at" in refused


def test_jax_asks_only_when_it_is_told_to(laptop: Laptop) -> None:
    result = laptop.python("-c", IN_JAX, **ONE_GPU).wait(60)
    assert result.returncode == 0, result.output
    seen: list[Any] = result_of(result)
    unchanged, more, same, found, other = seen
    assert (unchanged, more, same) == (True, 1, True), "importing eray, and registering, leave JAX's detection alone"
    assert found == ["node01:61447", 4, 3, None], "all that it sees is its own"
    assert other is None, "Slurm is eray's to read"
