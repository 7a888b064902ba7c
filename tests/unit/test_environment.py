import pytest

from eray._slurm.allocation import node_aliases, read_allocation
from eray._slurm.environment import Job, Mode, read_environment, read_mode
from eray._slurm.membership import check_lone_process, is_inside, require_job
from eray.errors import (
    ForeignLauncherError,
    NotATaskError,
    SlurmContradictionError,
    SlurmFormatError,
    SlurmMissingError,
)

STEP = {
    "SLURM_JOB_ID": "12",
    "SLURM_CLUSTER_NAME": "rig",
    "SLURM_STEP_ID": "3",
    "SLURM_STEP_NODELIST": "n[1-2]",
    "SLURM_STEP_NUM_NODES": "2",
    "SLURM_STEP_NUM_TASKS": "3",
    "SLURM_STEP_TASKS_PER_NODE": "2,1",
    "SLURM_PROCID": "1",
    "SLURM_NODEID": "0",
    "SLURM_LOCALID": "1",
    "SLURMD_NODENAME": "n1",
    "SLURM_CPUS_ON_NODE": "8",
    "SLURM_GPUS_ON_NODE": "2",
    "SLURM_JOB_NODELIST": "n[1-9]",
    "SLURM_JOB_NUM_NODES": "2",
    "SLURM_NTASKS": "99",
    "SLURM_NTASKS_PER_NODE": "7",
    "SLURM_RESTART_COUNT": "2",
}


def without(*names: str) -> dict[str, str]:
    return {name: value for name, value in STEP.items() if name not in names}


def test_read_environment_step_takes_only_the_steps_variables():
    found = read_environment(STEP)
    assert found.mode is Mode.STEP
    assert found.job == Job(id="12", step="3", restart=2, cluster="rig")
    assert found.nodes == ("n1", "n2")
    task = found.task
    assert (task.process_index, task.process_count, task.node_rank, task.node) == (1, 3, 0, "n1")
    assert (task.local_index, task.local_count, task.tasks_per_node) == (1, 2, (2, 1))
    assert (found.cpus_on_node, found.gpus_on_node, found.visible, found.notices) == (8, 2, None, ())


@pytest.mark.parametrize("name", ["SLURM_PROCID", "SLURM_NODEID", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE"])
@pytest.mark.parametrize("value", [None, ""])
def test_read_environment_step_without_a_variable_names_it(name, value):
    environ = without(name) if value is None else {**STEP, name: value}
    with pytest.raises(SlurmMissingError, match=name):
        read_environment(environ)


def test_read_environment_step_without_node_list_names_it():
    with pytest.raises(SlurmMissingError, match="SLURM_STEP_NODELIST"):
        read_environment(without("SLURM_STEP_NODELIST"))


def test_read_environment_step_missing_several_names_all():
    with pytest.raises(SlurmMissingError) as caught:
        read_environment(without("SLURM_PROCID", "SLURM_LOCALID"))
    assert caught.value.variables == ("SLURM_PROCID", "SLURM_LOCALID")


@pytest.mark.parametrize("name", ["SLURM_STEP_NUM_TASKS", "SLURM_STEP_NUM_NODES", "SLURMD_NODENAME", "SLURM_NTASKS"])
def test_read_environment_step_without_a_spare_variable_is_the_same(name):
    assert read_environment(without(name)).task == read_environment(STEP).task


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"SLURM_STEP_NUM_TASKS": "4"}, ("SLURM_STEP_TASKS_PER_NODE", "SLURM_STEP_NUM_TASKS")),
        ({"SLURM_STEP_NUM_NODES": "3"}, ("SLURM_STEP_NODELIST", "SLURM_STEP_NUM_NODES")),
        ({"SLURM_STEP_TASKS_PER_NODE": "3"}, ("SLURM_STEP_NODELIST", "SLURM_STEP_TASKS_PER_NODE")),
        ({"SLURM_NODEID": "2"}, ("SLURM_NODEID", "SLURM_STEP_NODELIST")),
        ({"SLURM_PROCID": "3"}, ("SLURM_PROCID", "SLURM_STEP_TASKS_PER_NODE")),
        ({"SLURM_LOCALID": "2"}, ("SLURM_LOCALID", "SLURM_NODEID", "SLURM_STEP_TASKS_PER_NODE")),
        ({"SLURMD_NODENAME": "n2"}, ("SLURMD_NODENAME", "SLURM_NODEID", "SLURM_STEP_NODELIST")),
    ],
)
def test_read_environment_step_contradiction_names_the_variables(change, named):
    with pytest.raises(SlurmContradictionError) as caught:
        read_environment({**STEP, **change})
    assert tuple(name for name, _ in caught.value.values) == named


@pytest.mark.parametrize(
    "name", ["SLURM_PROCID", "SLURM_JOB_ID", "SLURM_RESTART_COUNT", "SLURM_GPUS_ON_NODE", "SLURM_CPUS_ON_NODE"]
)
@pytest.mark.parametrize("value", ["x", "-1", "1.0", "٣", "9" * 5000])
def test_read_environment_malformed_number_names_variable_and_value(name, value):
    with pytest.raises(SlurmFormatError) as caught:
        read_environment({**STEP, name: value})
    assert (caught.value.variable, caught.value.value) == (name, value)


@pytest.mark.parametrize(
    ("environ", "memory"),
    [
        ({}, None),
        ({"SLURM_MEM_PER_NODE": "4096"}, 4096),
        ({"SLURM_MEM_PER_NODE": "4G"}, 4096),
        ({"SLURM_MEM_PER_NODE": "0"}, None),
        ({"SLURM_MEM_PER_CPU": "100"}, 800),
        ({"SLURM_MEM_PER_GPU": "1000"}, 2000),
    ],
)
def test_read_environment_memory_is_the_steps_on_this_node(environ, memory):
    assert read_environment({**STEP, **environ}).memory_mb_on_node == memory


def test_read_environment_malformed_memory_names_the_variable():
    with pytest.raises(SlurmFormatError, match="SLURM_MEM_PER_NODE"):
        read_environment({**STEP, "SLURM_MEM_PER_NODE": "lots"})


@pytest.mark.parametrize("marker", ["RAY_RAYLET_PID", "RAY_JOB_CONFIG_JSON_ENV_VAR"])
def test_read_environment_ray_worker_reads_nothing_of_the_raylets_task(marker):
    found = read_environment({**STEP, marker: "1"})
    assert (found.mode, found.task, found.nodes, found.gpus_on_node) == (Mode.RAY_WORKER, None, (), None)


def test_read_mode_srun_pmi_plugin_is_no_foreign_launcher():
    assert read_mode({**STEP, "PMI_RANK": "1", "PMI_SIZE": "3"}) is Mode.STEP
    assert read_mode({**STEP, "PMI_RANK": "0", "PMI_SIZE": "3"}) is Mode.FOREIGN_LAUNCHER


def test_read_environment_pty_with_several_tasks_is_noticed():
    (notice,) = read_environment({**STEP, "SLURM_PTY_PORT": "1"}).notices
    assert "3 tasks" in notice
    assert "ERAY_PROCESS_COUNT=1" in notice


BATCH = {"SLURM_JOB_ID": "5", "SLURM_JOB_NODELIST": "n[1-2]", "SLURM_PROCID": "0", "SLURMD_NODENAME": "n1"}


def test_check_lone_process_batch_script_of_two_nodes_is_no_task():
    with pytest.raises(NotATaskError, match=r"batch-shell of job 5.*n\[1-2\].*srun.*eray run"):
        check_lone_process(read_environment(BATCH), "n1")


def test_check_lone_process_one_node_is_allowed():
    check_lone_process(read_environment({**BATCH, "SLURM_JOB_NODELIST": "n1"}), "n1")
    check_lone_process(read_environment({"SLURM_JOB_ID": "5"}), "n1")
    check_lone_process(read_environment({}), "laptop")


def test_check_lone_process_login_node_is_no_task():
    shell = read_environment({"SLURM_JOB_ID": "5", "SLURM_JOB_NODELIST": "n1.site"})
    with pytest.raises(NotATaskError, match="login7 is not a node"):
        check_lone_process(shell, "login7")
    assert is_inside(shell, "n1.site")
    assert is_inside(shell, "n1")
    check_lone_process(shell, "n1")


def test_check_lone_process_mpirun_is_foreign():
    environ = {**BATCH, "OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "4"}
    with pytest.raises(ForeignLauncherError, match="OMPI_COMM_WORLD_RANK=3"):
        check_lone_process(read_environment(environ), "n1")


def test_require_job_without_id_names_it():
    with pytest.raises(SlurmMissingError, match="SLURM_JOB_ID"):
        require_job(read_environment(without("SLURM_JOB_ID")))


HET = {
    "SLURM_JOB_ID": "20",
    "SLURM_JOB_NODELIST": "n1",
    "SLURM_JOB_NUM_NODES": "1",
    "SLURM_JOB_NODELIST_HET_GROUP_0": "n1",
    "SLURM_JOB_NODELIST_HET_GROUP_1": "m[1-2]",
    "SLURM_JOB_CPUS_PER_NODE": "4",
    "SLURM_JOB_CPUS_PER_NODE_HET_GROUP_0": "4",
    "SLURM_JOB_CPUS_PER_NODE_HET_GROUP_1": "2(x2)",
}


def test_read_allocation_het_job_has_all_components():
    found = read_allocation(HET)
    assert found.nodes == ("n1", "m1", "m2")
    assert (found.het_groups, found.groups) == ((0, 1), (("n1",), ("m1", "m2")))
    assert found.cpus_per_node == (4, 2, 2)


@pytest.mark.parametrize(
    ("environ", "gpus"),
    [
        ({}, None),
        ({"SLURM_GPUS_ON_NODE": "4"}, 4),
        ({"SLURM_GPUS_ON_NODE": "4", "SLURM_GPUS": "8"}, 4),
        ({"SLURM_GPUS_ON_NODE": "4", "SLURM_GPUS": "6"}, 2),
        ({"SLURM_GPUS_ON_NODE": "2", "SLURM_GPUS": "6"}, 2),
        ({"SLURM_GPUS_PER_NODE": "a100:4"}, 4),
        ({"SLURM_GPUS_PER_NODE": "a100:2,h100:1"}, 3),
        ({"SLURM_GPUS": "6"}, 3),
        ({"SLURM_GPUS_PER_TASK": "2", "SLURM_TASKS_PER_NODE": "3,1"}, 2),
        ({"SLURM_GPUS_PER_TASK": "1", "SLURM_TASKS_PER_NODE": "3,1", "SLURM_GPUS_ON_NODE": "3"}, 1),
    ],
)
def test_read_allocation_gpus_that_every_node_has(environ, gpus):
    assert read_allocation({"SLURM_JOB_ID": "1", "SLURM_JOB_NODELIST": "n[1-2]", **environ}).gpus_per_node == gpus


@pytest.mark.parametrize("name", ["SLURM_JOB_ID", "SLURM_JOB_NODELIST"])
def test_read_allocation_without_a_variable_names_it(name):
    with pytest.raises(SlurmMissingError, match=name):
        read_allocation({key: value for key, value in BATCH.items() if key != name})


@pytest.mark.parametrize(
    ("text", "aliases"),
    [
        ("(null)", {}),
        ("ec0:1.2.3.4:foo,ec1:1.2.3.5:bar", {"ec0": "1.2.3.4", "ec1": "1.2.3.5"}),
        ("ec0:[fd00::1]:foo", {"ec0": "fd00::1"}),
    ],
)
def test_node_aliases_give_addresses(text, aliases):
    assert node_aliases({"SLURM_NODE_ALIASES": text}) == aliases


def test_node_aliases_malformed_names_the_variable():
    with pytest.raises(SlurmFormatError, match="SLURM_NODE_ALIASES"):
        node_aliases({"SLURM_NODE_ALIASES": "ec0"})
