"""Every way into the main job on a real Slurm: the right plan, exit code 0, and nothing left."""

import shlex

import pytest
from slurm_rig import Rig
from worlds import WHO, expect_nothing_left, read_world, read_worlds

pytestmark = [pytest.mark.slurm, pytest.mark.ray, pytest.mark.jax]
HELLO = "examples/hello_jax.py"


def expect_hello(output: str, nodes: list[str]) -> None:
    for index, node in enumerate(nodes):
        assert f"process {index} of {len(nodes)} on {node}: " in output
    assert f"all-gather over {len(nodes)} processes is right" in output


@pytest.mark.parametrize("attach", ["connect", "demand"])
def test_srun_tasks_hello(rig: Rig, attach: str) -> None:
    result = rig.srun(["-N2", "--ntasks-per-node=2", "python", HELLO], ERAY_ATTACH=attach).check()
    expect_nothing_left(rig)
    expect_hello(result.stdout, ["node01", "node01", "node02", "node02"])


def test_sbatch_eray_run_hello(rig: Rig) -> None:
    job = rig.sbatch(f"eray run --processes-per-node 2 -- python {HELLO}", "-N2").wait()
    expect_nothing_left(rig)
    assert (job.state, job.exit_code) == ("COMPLETED", 0), job.output
    expect_hello(job.output, ["node01", "node01", "node02", "node02"])


def test_srun_eray_run_is_the_step_itself(rig: Rig) -> None:
    result = rig.srun(["-N2", "-n2", "--ntasks-per-node=1", "eray", "run", "--", "python", WHO]).check()
    expect_nothing_left(rig)
    assert read_world(result.output).places == [("node01", 0), ("node02", 0)]


def test_salloc_shell_gpus_per_task_run_counts_each_nodes_gpus(rig: Rig) -> None:
    options = ["-N2", "--ntasks-per-node=2", "--gpus-per-task=1"]
    result = rig.salloc(options, f"JAX_PLATFORMS=cpu eray run --processes-per-node 2 -- python {WHO}").check()
    expect_nothing_left(rig)
    world = read_world(result.output)
    assert world.places == [("node01", 0), ("node01", 1), ("node02", 0), ("node02", 1)]
    assert world.devices == [("split", [0]), ("split", [1])] * 2
    assert world.tokens == [["0", "1"]] * 2


def test_srun_tasks_uneven_over_three_nodes(rig: Rig) -> None:
    result = rig.srun(["-N3", "-n5", "python", WHO]).check()
    expect_nothing_left(rig)
    world = read_world(result.output)
    assert world.places == [("node01", 0), ("node01", 1), ("node01", 2), ("node02", 0), ("node03", 0)]
    assert world.nodes == ["node01", "node02", "node03"]


@pytest.mark.full
def test_srun_tasks_cyclic_share_the_nodes_gpus(rig: Rig) -> None:
    options = ["-N2", "--ntasks-per-node=2", "--gpus-per-node=4", "-m", "cyclic"]
    result = rig.srun([*options, "python", WHO], JAX_PLATFORMS="cpu").check()
    expect_nothing_left(rig)
    world = read_world(result.output)
    assert world.places == [("node01", 0), ("node02", 0), ("node01", 1), ("node02", 1)]
    assert world.devices == [("split", [0, 1]), ("split", [0, 1]), ("split", [2, 3]), ("split", [2, 3])]


def test_srun_tasks_arbitrary_process_0_off_the_head(rig: Rig) -> None:
    hosts = rig.share.out / "hosts"
    hosts.write_text("node02\nnode01\nnode02\n")
    result = rig.srun(["-N2", "-n3", "-m", "arbitrary", "python", WHO], SLURM_HOSTFILE=str(hosts)).check()
    expect_nothing_left(rig)
    world = read_world(result.output)
    assert world.places == [("node02", 0), ("node01", 0), ("node02", 1)]
    assert world.nodes == ["node01", "node02"]


@pytest.mark.full
def test_job_array_elements_at_the_same_time_are_worlds_of_their_own(rig: Rig) -> None:
    meeting = rig.share.out / "meeting"
    meeting.mkdir(mode=0o777)
    meeting.chmod(0o777)
    script = f"export MEET={shlex.quote(str(meeting))}:2\nsrun python {WHO}"
    job = rig.sbatch(script, "-N2", "-n2", "--ntasks-per-node=1", "--array=0-1").wait()
    expect_nothing_left(rig)
    assert (job.state, job.exit_code) == ("COMPLETED", 0), job.output
    worlds = read_worlds(job.output)
    assert [world.places for world in worlds] == [[("node01", 0), ("node02", 0)]] * 2
    assert len({world.topology["key"] for world in worlds}) == 2


def test_het_job_one_step_over_both_components_and_eray_run(rig: Rig) -> None:
    script = f"srun --het-group=0,1 python {WHO} || exit\neray run -- python {WHO}"
    job = rig.sbatch(script, "-N1", "-n1", ":", "-N2", "-n2").wait()
    expect_nothing_left(rig)
    assert (job.state, job.exit_code) == ("COMPLETED", 0), job.output
    worlds = read_worlds(job.output)
    assert [world.places for world in worlds] == [[("node01", 0), ("node02", 0), ("node03", 0)]] * 2


def test_srun_tasks_as_root(rig: Rig) -> None:
    home = rig.share.out / "root"
    home.mkdir(mode=0o700)
    result = rig.srun(["-N2", "python", WHO], user="root", HOME=str(home)).check()
    expect_nothing_left(rig)
    assert read_world(result.output).places == [("node01", 0), ("node02", 0)]


def test_eray_up_serves_the_steps_of_its_job(rig: Rig) -> None:
    script = f"""
        exports=$(mktemp)
        eray up >$exports & up=$!
        until grep -q RAY_ADDRESS $exports || ! kill -0 $up; do sleep 0.1; done
        srun --overlap -N2 -n2 --ntasks-per-node=1 python {WHO} || exit
        set -a; . $exports
        srun --overlap -N1 -n1 python examples/inspect_cluster.py || exit
        kill $up; wait $up; echo "eray up ended with $?"
    """
    job = rig.sbatch(script, "-N2", "-n2").wait()
    expect_nothing_left(rig)
    assert (job.state, job.exit_code) == ("COMPLETED", 0), job.output
    world = read_world(job.output)
    assert world.places == [("node01", 0), ("node02", 0)]
    assert world.topology["key"] == job.id
    assert "world step-1 generation 1: closed" in job.output
    assert "eray up ended with 143" in job.output
