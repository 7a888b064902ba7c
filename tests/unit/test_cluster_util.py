"""eFormer's names: what each answers by the variables of one process, and the faults that it no longer has."""

import dataclasses
import inspect
import os
import re
import subprocess
import sys
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from case_files import case_id, read_cases
from slurm_task import TASK

import eray
from eray import cluster_util
from eray._jax import cluster_env
from eray.cluster_util import (
    DistributedConfig,
    RayClusterConfig,
    auto_ray_cluster,
    eSlurmCluster,
    logical_cpu_core_count,
)
from eray.errors import DevicePlanError, ErayError, JaxInterfaceError, SlurmMissingError

LAPTOP: dict[str, str] = {}
WITH_COORDINATOR = [case for case in read_cases("env_cases.jsonl") if "coordinator_host" in case["expected"]]
SALLOC = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "node[01-02]", "SLURM_NTASKS": "8"}
BATCH = SALLOC | {"SLURM_PROCID": "0", "SLURM_NODEID": "0", "SLURM_LOCALID": "0"}
INTERACTIVE = BATCH | {"SLURM_STEP_ID": "4294967290", "SLURM_STEP_NUM_TASKS": "1", "SLURM_PTY_PORT": "40000"}


@pytest.fixture
def set_environ(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Replace all that any of eray, Slurm and Ray reads."""

    def set_environ(environ: Mapping[str, str | None]) -> None:
        for name in list(os.environ):
            if re.match(r"SLURM|ERAY_|RAY_|JAX_|PMI|OMPI|.*VISIBLE_DEVICES$", name):
                monkeypatch.delenv(name)
        for name, value in environ.items():
            if value is not None:
                monkeypatch.setenv(name, value)
        # Other tests of this session may have attached this process to a Ray.
        monkeypatch.setattr("eray._ray.attach.current_address", lambda: None)

    return set_environ


def test_signatures_and_defaults_are_eformers() -> None:
    assert str(inspect.signature(auto_ray_cluster)).partition(" ->")[0] == (
        "(address: str | None = None, namespace: str | None = 'eray-executor', start_workers: bool = True, "
        "fail_if_cluster_already_initialized: bool = False, **kwargs: Any)"
    )
    fields = {field.name: field.default for field in dataclasses.fields(DistributedConfig)}
    assert fields == dict.fromkeys(["coordinator_address", "num_processes", "process_id", "local_device_ids"])
    assert RayClusterConfig() == RayClusterConfig(address=None, start_workers=True, auto_start_cluster=True)
    with pytest.raises(dataclasses.FrozenInstanceError):
        DistributedConfig().num_processes = 2  # type: ignore[misc]


def test_names_are_eray_s_too_and_cost_nothing() -> None:
    assert all(getattr(eray, name) is getattr(cluster_util, name) for name in cluster_util.__all__)
    program = "import sys, eray.cluster_util; print({'ray', 'jax', 'numpy', 'pydantic', 'asyncio'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout == "set()\n"


def test_task_is_read_from_the_step_alone(set_environ: Any) -> None:
    set_environ(TASK | {"SLURM_NTASKS": "9", "SLURM_NODELIST": "other", "SLURM_NTASKS_PER_NODE": "8"})
    assert eSlurmCluster.is_env_present()
    assert (eSlurmCluster.get_process_count(), eSlurmCluster.get_process_id()) == (4, 3)
    assert eSlurmCluster.get_local_process_id() == 1
    assert eSlurmCluster.get_coordinator_address() == "node01:61447"
    assert eSlurmCluster.get_coordinator_address(timeout_secs=5, override_coordinator_port="70") == "node01:70"


@pytest.mark.parametrize(
    "environ",
    [LAPTOP, {"SLURM_JOB_ID": "7"}, BATCH, SALLOC, INTERACTIVE],  # bug-011, bug-012, bug-013
    ids=["laptop", "ssh", "batch", "salloc", "interactive"],
)
def test_no_task(set_environ: Any, environ: Mapping[str, str]) -> None:
    set_environ(environ)
    assert not eSlurmCluster.is_env_present()
    assert eSlurmCluster.get_local_process_id() is None
    assert eSlurmCluster.get_local_device_ids_for_process() is None
    for method in (eSlurmCluster.get_process_count, eSlurmCluster.get_process_id):
        with pytest.raises(ValueError, match="no task of a Slurm step"):
            method()


def test_process_of_eray_run_does_not_take_its_supervisors_rank(set_environ: Any) -> None:
    set_environ(TASK | {"ERAY_RUN_DIR": "/tmp/eray-1/7"})
    assert not eSlurmCluster.is_env_present()
    assert eSlurmCluster.get_local_device_ids_for_process() is None


@pytest.mark.parametrize("case", WITH_COORDINATOR, ids=case_id)
def test_coordinator_is_on_the_node_of_process_0(set_environ: Any, case: Mapping[str, Any]) -> None:
    for environ in case.get("envs") or [case["env"]]:
        set_environ(environ)
        host = case["expected"]["coordinator_host"]
        assert eSlurmCluster.get_coordinator_address(override_coordinator_port="70") == f"{host}:70"
        if environ.get("SLURM_JOB_ID"):
            assert 61440 <= int(eSlurmCluster.get_coordinator_address().rpartition(":")[2]) <= 65535


@pytest.mark.parametrize(
    ("nodes", "host"),
    [
        ("a,b", "a"),  # of eFormer's own reader: FACTS J12
        ("a[1-2],b[3-4]", "a1"),
        ("node[3]", "node3"),
        ("r[1-2]n[1-2]", "r1n1"),
        ("gpu[1-2]-ib", "gpu1-ib"),
        ("linux[1,2]", "linux1"),  # bug-022
        ("nodeA,nodeB[001,003],nodeC", "nodeA"),  # bug-023
        ("host-[001-002]", "host-001"),  # bug-024
        ("n", "n"),
        ("rack[0-1]_blade[0-1]", "rack0_blade0"),  # bug-025
        ("ml-16-node-[001-002,004],ml-17-node-[001-003]", "ml-16-node-001"),  # bug-026
    ],
)
def test_batch_shell_names_the_jobs_first_node(set_environ: Any, nodes: str, host: str) -> None:
    set_environ(BATCH | {"SLURM_JOB_NODELIST": nodes})
    assert eSlurmCluster.get_coordinator_address() == f"{host}:61447"


@pytest.mark.parametrize("nodes", ["n[1", "n[2-1]"])  # taken in silence before: FACTS J12
def test_malformed_node_list_is_a_value_error(set_environ: Any, nodes: str) -> None:
    for environ, name in ((BATCH, "SLURM_JOB_NODELIST"), (TASK, "SLURM_STEP_NODELIST")):
        set_environ(environ | {name: nodes})
        with pytest.raises(ValueError, match=re.escape(f"{name}={nodes!r}: ")):
            eSlurmCluster.get_coordinator_address()


@pytest.mark.parametrize("environ", [LAPTOP, {"SLURM_JOB_ID": "7"}, BATCH | {"SLURM_JOB_NODELIST": ""}], ids=str)
def test_no_node_list_is_a_value_error(set_environ: Any, environ: Mapping[str, str]) -> None:
    set_environ(environ)
    with pytest.raises(ValueError, match=r"missing SLURM_STEP_NODELIST, SLURM_JOB_NODELIST.*coordinator_address"):
        eSlurmCluster.get_coordinator_address()


@pytest.mark.parametrize("gone", [name for name in TASK if name != "CUDA_VISIBLE_DEVICES"])
def test_missing_variable_is_never_a_key_error(set_environ: Any, gone: str) -> None:
    set_environ(TASK | {gone: None})
    for method in (
        eSlurmCluster.is_env_present,
        eSlurmCluster.get_coordinator_address,
        eSlurmCluster.get_local_device_ids_for_process,
        eSlurmCluster.get_process_count,
        eSlurmCluster.get_process_id,
        eSlurmCluster.get_local_process_id,
    ):
        said = ""
        try:
            method()
        except ValueError as error:  # nothing else may come
            said = str(error)
        assert said == "" or "SLURM_" in said


def test_arbitrary_distribution_asks_the_host_file(set_environ: Any, tmp_path: Path) -> None:
    third = {"SLURM_STEP_NODELIST": "n[1-3]", "SLURM_STEP_TASKS_PER_NODE": "1(x3)", "SLURM_DISTRIBUTION": "arbitrary"}
    place = {"SLURM_PROCID": "2", "SLURM_NODEID": "0", "SLURM_LOCALID": "0", "SLURM_GTIDS": "2"}
    (tmp_path / "hosts").write_text("n3\nn2\nn1\n")
    set_environ(TASK | third | place | {"SLURM_HOSTFILE": "hosts", "SLURM_SUBMIT_DIR": str(tmp_path)})
    assert eSlurmCluster.get_coordinator_address() == "n3:61447"
    set_environ(TASK | third | place | {"SLURM_HOSTFILE": "gone"})
    with pytest.raises(SlurmMissingError, match=r"SLURM_HOSTFILE.*eray.connect\(\)"):
        eSlurmCluster.get_coordinator_address()


@pytest.mark.parametrize(
    ("environ", "ids"),
    [
        ({}, [2, 3]),
        ({"CUDA_VISIBLE_DEVICES": "4,5,6,7"}, [2, 3]),  # ordinals, not cards: FACTS J2, bug-005
        ({"CUDA_VISIBLE_DEVICES": "GPU-a,GPU-b,GPU-c,GPU-d"}, [2, 3]),  # bug-003
        ({"CUDA_VISIBLE_DEVICES": "MIG-a", "SLURM_GPUS_ON_NODE": "2"}, [0]),
        ({"CUDA_VISIBLE_DEVICES": None, "ROCR_VISIBLE_DEVICES": "0,1,2,3"}, [2, 3]),
        ({"CUDA_VISIBLE_DEVICES": "2", "SLURM_GPUS_ON_NODE": "2"}, [0]),  # each task has its own, by a wrapper: bug-010
        ({"CUDA_VISIBLE_DEVICES": "NoDevFiles", "SLURM_GPUS_ON_NODE": None}, None),  # bug-001
        ({"CUDA_VISIBLE_DEVICES": "", "SLURM_GPUS_ON_NODE": None}, None),
        ({"CUDA_VISIBLE_DEVICES": None, "SLURM_GPUS_ON_NODE": None}, None),
        ({"SLURM_STEP_TASKS_PER_NODE": "1(x2)", "SLURM_LOCALID": "0", "SLURM_PROCID": "1"}, [0, 1, 2, 3]),  # bug-007
        (
            {"SLURM_STEP_NODELIST": "node[01-03]", "SLURM_STEP_TASKS_PER_NODE": "2(x2),1"}  # bug-021
            | {"SLURM_PROCID": "4", "SLURM_NODEID": "2", "SLURM_LOCALID": "0"},
            [0, 1, 2, 3],
        ),
        ({"SLURM_STEP_TASKS_PER_NODE": None}, None),
        ({"SLURMD_NODENAME": None}, [2, 3]),
        ({"ERAY_DEVICES": "0,3"}, [0, 3]),
    ],
    ids=str,
)
def test_own_devices(set_environ: Any, environ: Mapping[str, str | None], ids: list[int] | None) -> None:
    set_environ(TASK | {"SLURM_GTIDS": None} | environ)
    assert eSlurmCluster.get_local_device_ids_for_process() == ids


@pytest.mark.parametrize("visible", ["0,1,2", "0"])
def test_devices_that_do_not_divide_are_a_value_error(set_environ: Any, visible: str) -> None:
    set_environ(TASK | {"CUDA_VISIBLE_DEVICES": visible, "SLURM_GPUS_ON_NODE": str(len(visible.split(",")))})
    with pytest.raises(DevicePlanError, match="node02: 2 processes and"):
        eSlurmCluster.get_local_device_ids_for_process()


@pytest.mark.parametrize(
    ("config", "says"),
    [
        (
            {"coordinator_address": "node01", "num_processes": 1, "process_id": 0},
            "coordinator_address='node01' must be",
        ),
        ({"coordinator_address": "node01:7"}, "no num_processes"),
        ({"num_processes": 2}, "no process_id"),
        ({"num_processes": 2, "process_id": 2}, "process_id=2 must be"),
        ({"num_processes": 2, "process_id": 0}, "there is no cluster"),
        ({"num_processes": "two", "process_id": 0}, "num_processes='two'"),
        ({"local_device_ids": ["GPU-a"]}, "local_device_ids="),
        ({"local_device_ids": [0, 0]}, "twice"),
        ({"local_device_ids": []}, "ordinals"),
        ({"local_device_ids": -1}, "local_device_ids=-1"),
    ],
    ids=str,
)
def test_config_that_cannot_work_is_a_value_error(set_environ: Any, config: dict[str, Any], says: str) -> None:
    set_environ(LAPTOP)
    with pytest.raises(ValueError, match=re.escape(says)) as caught:
        DistributedConfig(**config).initialize()
    assert isinstance(caught.value, ErayError)


def test_any_ray_of_the_machine_is_never_taken(set_environ: Any) -> None:
    set_environ(LAPTOP)
    with pytest.raises(ValueError, match="takes any Ray of this machine"):
        auto_ray_cluster("au" + "to")
    with pytest.raises(ValueError, match=r"address='ray://head:10001' is for Ray's client"):
        auto_ray_cluster("ray://head:10001")


def test_ray_is_left_alone_where_it_is_not_to_be_started(set_environ: Any) -> None:
    set_environ({"RAY_ADDRESS": "ray://head:10001"})
    RayClusterConfig(auto_start_cluster=False).initialize()
    with pytest.raises(ValueError, match="RAY_ADDRESS='ray://head:10001'"):
        RayClusterConfig().initialize()


@pytest.mark.parametrize("value", [float("inf"), float("nan"), 1.5, -1, "two", True], ids=str)
def test_size_of_ray_that_is_none_is_a_value_error(set_environ: Any, value: Any) -> None:
    set_environ(LAPTOP)
    with pytest.raises(ValueError, match=f"num_cpus={value!r} must be a whole number"):
        auto_ray_cluster(num_cpus=value)


def test_cpu_count(set_environ: Any) -> None:
    set_environ({"SLURM_CPUS_ON_NODE": "37"})
    assert logical_cpu_core_count() == 37
    set_environ(LAPTOP)
    assert logical_cpu_core_count() == len(os.sched_getaffinity(0))
    set_environ({"SLURM_CPUS_ON_NODE": "2(x2)"})
    with pytest.raises(ValueError, match=r"SLURM_CPUS_ON_NODE='2\(x2\)'"):
        logical_cpu_core_count()


class _Env:
    opt_in_only_method = False
    _cluster_types: tuple[Any, ...] = ()

    @classmethod
    def is_env_present(cls) -> bool:
        return False

    @classmethod
    def get_coordinator_address(cls, timeout_secs: int, override_coordinator_port: str) -> str:
        return ""

    get_process_count = get_process_id = get_local_process_id = is_env_present


def test_jax_table_that_changed_is_a_clear_error() -> None:
    clusters = types.ModuleType("clusters")
    with pytest.raises(JaxInterfaceError, match=r"there is no ClusterEnv; call eray.connect\(\)"):
        cluster_env.checked(clusters)
    lacks = type("ClusterEnv", (), dict.fromkeys(cluster_env.ASKED))
    clusters.ClusterEnv = lacks  # type: ignore[attr-defined]
    with pytest.raises(JaxInterfaceError, match="ClusterEnv has no opt_in_only_method, _cluster_types"):
        cluster_env.checked(clusters)
    asks_more = type("ClusterEnv", (_Env,), {"get_coordinator_address": staticmethod(lambda timeout_secs, peers: "")})
    clusters.ClusterEnv = asks_more  # type: ignore[attr-defined]
    with pytest.raises(JaxInterfaceError, match="is asked with peers"):
        cluster_env.checked(clusters)
    clusters.ClusterEnv = _Env  # type: ignore[attr-defined]
    assert cluster_env.checked(clusters) is _Env
