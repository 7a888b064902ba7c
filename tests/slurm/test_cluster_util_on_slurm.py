"""eFormer's order of calls, unchanged but for the import, as tasks of a step."""

import json
import re
from typing import Any

import pytest
from slurm_rig import Rig
from worlds import expect_nothing_left

pytestmark = [pytest.mark.slurm, pytest.mark.ray, pytest.mark.jax]
OLD = "programs/old_order.py"


def run_old(rig: Rig, options: list[str], *calls: str) -> list[dict[str, Any]]:
    """Return what each process printed, by its index in JAX; all of them are in one Ray, and nothing is left."""
    result = rig.srun([*options, "python", OLD, *calls]).check()
    expect_nothing_left(rig)
    if calls[-1] == "leave":
        assert result.stdout.count("left: this process has left its world; a new one needs a new process\n") == 4
    found: list[dict[str, Any]] = [json.loads(text) for text in re.findall(r"^old (\{.*\})$", result.stdout, re.M)]
    found.sort(key=lambda each: tuple(each["jax"]))
    assert len({each["gcs"] for each in found}) == 1, result.output
    assert not any(each["by_formula"] for each in found), "another job can have that port: FACTS J4, bug-032"
    return found


@pytest.mark.parametrize(
    "calls", [pytest.param(("jax", "ray"), marks=pytest.mark.full), ("ray", "jax", "leave")], ids=" then ".join
)
def test_two_nodes_with_two_tasks_each(rig: Rig, calls: tuple[str, ...]) -> None:
    found = run_old(rig, ["-N2", "--ntasks-per-node=2"], *calls)
    assert [each["host"] for each in found] == ["node01", "node01", "node02", "node02"]
    for index, each in enumerate(found):
        assert each["jax"] == [index, 4]
        assert each["gathered"] == [0, 1, 2, 3]
        assert each["namespace"] == "eray-executor"
        assert each["nodes"] == ["node01", "node02"]
        assert [cpus > 0 for cpus in each["cpus"]] == [True, True]


@pytest.mark.full
@pytest.mark.parametrize("calls", [("jax", "ray:mine"), ("ray:mine", "jax")], ids=" then ".join)
def test_own_namespace_and_arguments_of_ray_init(rig: Rig, calls: tuple[str, str]) -> None:
    found = run_old(rig, ["-N2", "--ntasks-per-node=1"], *calls)
    assert [(each["jax"], each["namespace"], each["task"]) for each in found] == [
        ([index, 2], "mine", "old_order") for index in range(2)
    ]


def test_head_only_then_jax_leaves_the_other_node_without_cpus(rig: Rig) -> None:
    found = run_old(rig, ["-N2", "--ntasks-per-node=1"], "head", "jax")
    assert [each["jax"] for each in found] == [[0, 2], [1, 2]]
    for each in found:
        assert [cpus > 0 for cpus in each["cpus"]] == [False, True]


def test_jax_starts_by_the_class_when_it_is_asked_to(rig: Rig) -> None:
    job = rig.sbatch("srun python programs/jax_method.py", "-N2", "--ntasks-per-node=1").wait()
    assert job.exit_code == 0, job.output
    address = f"node01:{61440 + int(job.id) % 4096}"
    assert sorted(re.findall(r"^jax .*$", job.output, re.M)) == [f"jax {index} of 2 by {address}" for index in range(2)]
    (ray,) = set(re.findall(r"^ray .*$", job.output, re.M))
    assert ray.endswith(" eray-executor ['node01', 'node02']")


REFUSED = "from eray.cluster_util import auto_ray_cluster; auto_ray_cluster(fail_if_cluster_already_initialized=True)"


def test_cluster_of_the_job_is_used_and_refused_where_there_must_be_none(rig: Rig) -> None:
    script = f"""
        exports=$(mktemp)
        eray up >$exports & up=$!
        until grep -q RAY_ADDRESS $exports || ! kill -0 $up; do sleep 0.1; done
        srun --overlap -N2 -n2 --ntasks-per-node=1 python {OLD} ray jax
        python -c "{REFUSED}"; echo "batch $?"
        srun --overlap -N1 -n1 python -c "{REFUSED}"; echo "task $?"
        kill $up; wait $up
    """
    job = rig.sbatch(script, "-N2", "-n2").wait()
    expect_nothing_left(rig)
    found = [json.loads(text) for text in re.findall(r"^old (\{.*\})$", job.output, re.M)]
    assert [each["key"] for each in found] == [job.id, job.id], job.output
    assert job.output.count(f"job {job.id} has a cluster already, at {found[0]['gcs']}") == 2, job.output
    assert [line for line in job.output.splitlines() if line.startswith(("batch ", "task "))] == ["batch 4", "task 4"]
