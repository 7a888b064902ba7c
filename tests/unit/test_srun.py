import pytest
from case_files import CASES

from eray._cli.plan import read_environ_file
from eray._slurm.allocation import read_allocation
from eray._slurm.srun import step_command

JOB = {
    "SLURM_JOB_ID": "7",
    "SLURM_JOB_NODELIST": "n[1-3]",
    "SLURM_CONF": "/etc/slurm/slurm.conf",
    "SLURM_CLUSTER_NAME": "rig",
    "SLURM_NTASKS": "6",
    "SLURM_NTASKS_PER_NODE": "2",
    "SLURM_GPUS_ON_NODE": "4",
    "SLURM_EXPORT_ENV": "NONE",
    "SLURM_HOSTFILE": "hosts",
    "SRUN_CPUS_PER_TASK": "2",
    "SBATCH_GPUS_PER_TASK": "1",
    "SLURMD_NODENAME": "n1",
    "SLURM_RESTART_COUNT": "1",
    "SLURM_ARRAY_TASK_ID": "3",
    "SLURM_SUBMIT_DIR": "/home/u",
    "PATH": "/bin",
    "ERAY_LOG": "info",
}
OPTIONS = ("--ntasks-per-node=1", "--overlap", "--cpu-bind=none", "--mem=0", "--export=ALL")


def test_step_command_spans_the_allocation_once_a_node():
    command = step_command(read_allocation(JOB), ["eray", "node", "--x=a b"], JOB)
    assert command.argv == ("srun", "-N3", "-n3", *OPTIONS, "--gres=gpu:4", "eray", "node", "--x=a b")
    assert str(command).endswith("eray node '--x=a b'")


def test_step_command_tells_its_tasks_the_jobs_memory():
    environ = JOB | {"SLURM_MEM_PER_CPU": "2048"}
    assert "--export=ALL,SLURM_MEM_PER_CPU=2048" in step_command(read_allocation(environ), ["x"], environ).argv


def test_step_command_without_gpus_asks_for_none_and_keeps_going_when_told():
    environ = {name: value for name, value in JOB.items() if name != "SLURM_GPUS_ON_NODE"}
    command = step_command(read_allocation(environ), ["x"], environ, no_kill=True)
    assert command.argv == ("srun", "-N3", "-n3", *OPTIONS, "--no-kill", "--kill-on-bad-exit=0", "x")


def test_step_command_environment_has_no_option_of_srun():
    env = step_command(read_allocation(JOB), ["x"], JOB).env
    assert env == {
        "SLURM_JOB_ID": "7",
        "SLURM_CONF": "/etc/slurm/slurm.conf",
        "SLURM_CLUSTER_NAME": "rig",
        "SLURM_RESTART_COUNT": "1",
        "SLURM_ARRAY_TASK_ID": "3",
        "SLURM_SUBMIT_DIR": "/home/u",
        "PATH": "/bin",
        "ERAY_LOG": "info",
    }


def test_step_command_old_job_id_name_is_renewed():
    environ = {"SLURM_JOBID": "9", "SLURM_NODELIST": "n1"}
    assert step_command(read_allocation(environ), ["x"], environ).env == {"SLURM_JOB_ID": "9"}


def test_step_command_het_job_is_one_step_over_its_components():
    environ = {
        "SLURM_JOB_ID": "20",
        "SLURM_JOB_NODELIST_HET_GROUP_0": "n1",
        "SLURM_JOB_NODELIST_HET_GROUP_1": "m[1-2]",
    }
    command = step_command(read_allocation({**environ, "SLURM_GPUS_ON_NODE": "2"}), ["x"], environ)
    assert command.argv == ("srun", "--het-group=0,1", *OPTIONS, "x")
    assert command.env == {
        "SLURM_JOB_ID": "20",
        "SLURM_NNODES_HET_GROUP_0": "1",
        "SLURM_NTASKS_HET_GROUP_0": "1",
        "SLURM_NNODES_HET_GROUP_1": "2",
        "SLURM_NTASKS_HET_GROUP_1": "2",
    }


@pytest.mark.parametrize(
    ("case", "nodes", "gpus"),
    [
        ("sbatch-gpus-per-task1.batch", 2, 2),
        ("sbatch-gpus-per-node4.batch", 2, 4),
        ("sbatch-gres2.batch", 2, 2),
        ("sbatch-exclusive.batch", 2, 4),
        ("sbatch-N3-n5.batch", 3, None),
        ("sbatch-cpt.batch", 2, None),
    ],
)
def test_step_command_of_real_batch_scripts(case, nodes, gpus):
    environ = read_environ_file(str(CASES / "slurm-env" / case / "task0.env"))
    argv = step_command(read_allocation(environ), ["x"], environ).argv
    assert argv[1:3] == (f"-N{nodes}", f"-n{nodes}")
    assert [word for word in argv if word.startswith("--gres")] == ([f"--gres=gpu:{gpus}"] if gpus else [])
