import pytest

from eray._identity import Identity, identify, read_site
from eray.errors import ForeignLauncherError, NotATaskError, RayAttachError, SettingError, UsageError

JOB = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n[1-2]", "SLURM_JOB_NUM_NODES": "2", "SLURM_CLUSTER_NAME": "c"}
TASK = JOB | {
    "SLURM_STEP_ID": "3",
    "SLURM_STEP_NODELIST": "n[1-2]",
    "SLURM_STEP_NUM_TASKS": "4",
    "SLURM_STEP_TASKS_PER_NODE": "2(x2)",
    "SLURM_PROCID": "3",
    "SLURM_NODEID": "1",
    "SLURM_LOCALID": "1",
    "SLURM_GTIDS": "1,3",
}
RUN = {"ERAY_RUN_DIR": "/r", "ERAY_WORLD": "main", "ERAY_PROCESS_INDEX": "1", "ERAY_PROCESS_COUNT": "2"}


def who(environ, *, attached=False, **given) -> Identity:
    given = {"world": None, "process_count": None, "process_index": None} | given
    return identify(read_site(environ), attached=attached, **given)


def test_task_of_a_step():
    found = who(TASK)
    assert (found.world, found.process_index, found.process_count) == ("step-3", 3, 4)
    assert (found.local_index, found.local_count, found.indexes_on_node) == (1, 2, (1, 3))


def test_process_of_eray_run_inside_a_step_is_not_the_supervisors_task():
    found = who(TASK | RUN)
    assert (found.world, found.process_index, found.process_count) == ("main", 1, 2)
    assert found.socket_path == "/r/sock"


def test_arguments_beat_what_eray_run_set():
    found = who(RUN, world="mine", process_index=0, process_count=1)
    assert (found.world, found.process_index, found.process_count) == ("mine", 0, 1)


def test_ray_address_beats_the_step():
    assert who(TASK | {"RAY_ADDRESS": "h:1"}).ray_address == "h:1"


def test_attached_process_uses_its_ray():
    assert who({}, attached=True, world="w", process_index=1, process_count=3).ray_address == ""


def test_ray_worker_ignores_the_variables_of_the_task_that_started_ray():
    found = who(TASK | RUN | {"RAY_RAYLET_PID": "1"})
    assert found.ray_address == ""


def test_no_cluster_is_a_world_of_one():
    found = who({})
    assert (found.process_index, found.process_count, found.notice) == (0, 1, None)


def test_ssh_login_is_a_world_of_one_with_a_notice():
    found = who({"SLURM_JOB_ID": "7"})
    assert found.process_count == 1
    assert "job 7" in (found.notice or "")


BAD = {
    "shell_of_two_nodes": (JOB, {}, NotATaskError),
    "batch_script_of_two_nodes": (JOB | {"SLURM_PROCID": "0", "SLURM_NODEID": "0"}, {}, NotATaskError),
    "mpirun": (TASK | {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "9"}, {}, ForeignLauncherError),
    "index_without_count": ({}, {"process_index": 1}, UsageError),
    "count_without_index": ({}, {"process_count": 2}, UsageError),
    "index_beyond_count": ({}, {"process_index": 5, "process_count": 2}, UsageError),
    "negative_index": ({}, {"process_index": -1, "process_count": 2}, UsageError),
    "run_directory_alone": ({"ERAY_RUN_DIR": "/r"}, {}, SettingError),
}


@pytest.mark.parametrize(("environ", "given", "error"), BAD.values(), ids=BAD)
def test_who_am_i_has_no_answer(environ, given, error):
    with pytest.raises(error):
        who(environ, **given)


def test_ray_address_that_is_none_is_named():
    from eray._ray import foreign

    with pytest.raises(RayAttachError, match="RAY_ADDRESS='somewhere'"):
        foreign.attach("somewhere")


def test_several_processes_without_a_cluster_have_no_place():
    with pytest.raises(UsageError, match="eray run -n 3"):
        who({}, process_index=1, process_count=3)


def test_attached_task_of_a_step_goes_to_its_own_cluster_where_the_difference_is_told():
    found = who(TASK, attached=True)
    assert (found.ray_address, found.process_index, found.process_count) == (None, 3, 4)


def test_ray_address_in_a_step_decides_the_cluster_and_not_the_place():
    found = who(TASK | {"RAY_ADDRESS": "h:1"})
    assert (found.ray_address, found.process_index, found.process_count) == ("h:1", 3, 4)


def test_own_world_of_some_tasks_is_not_laid_out_as_the_step():
    assert who(TASK, process_index=0, process_count=1).indexes_on_node is None
