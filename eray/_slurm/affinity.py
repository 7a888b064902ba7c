"""Which CPUs of a node are a step's, where srun binds each task to some of them."""

from collections.abc import Mapping

from eray._slurm import variables as v


def step_cpus(environ: Mapping[str, str]) -> frozenset[int] | None:
    """Return the CPUs of all tasks of the step on this node, None where srun does not bind by masks.

    A task is bound to its own; what serves the whole node may use those of all (srun(1), SLURM_CPU_BIND_LIST).

    >>> sorted(step_cpus({"SLURM_CPU_BIND_TYPE": "mask_cpu:", "SLURM_CPU_BIND_LIST": "0x3,0xC"}))
    [0, 1, 2, 3]
    """
    if not environ.get(v.CPU_BIND_TYPE, "").startswith("mask_cpu"):
        return None
    try:
        masks = [int(text, 16) for text in environ.get(v.CPU_BIND_LIST, "").split(",") if text]
    except ValueError:
        return None
    together = 0
    for mask in masks:
        together |= mask
    return frozenset(bit for bit in range(together.bit_length()) if together >> bit & 1) or None
