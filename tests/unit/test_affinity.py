import pytest

from eray._slurm.affinity import step_cpus

CASES = {
    "not_bound": ({}, None),
    "bound_by_cores_of_the_cgroup": ({"SLURM_CPU_BIND_TYPE": "cores", "SLURM_CPU_BIND_LIST": ""}, None),
    "two_tasks": ({"SLURM_CPU_BIND_TYPE": "mask_cpu:", "SLURM_CPU_BIND_LIST": "0x1,0x2"}, {0, 1}),
    "more_than_64": (
        {"SLURM_CPU_BIND_TYPE": "mask_cpu:", "SLURM_CPU_BIND_LIST": "0x10000000000000000000"},
        {76},
    ),
    "not_a_mask": ({"SLURM_CPU_BIND_TYPE": "mask_cpu:", "SLURM_CPU_BIND_LIST": "0xZ"}, None),
    "empty": ({"SLURM_CPU_BIND_TYPE": "mask_cpu:", "SLURM_CPU_BIND_LIST": ""}, None),
}


@pytest.mark.parametrize(("environ", "cpus"), CASES.values(), ids=CASES)
def test_step_cpus(environ, cpus):
    assert step_cpus(environ) == cpus
