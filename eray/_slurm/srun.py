"""The one srun step that starts eray on every node of an allocation."""

import re
from collections.abc import Mapping, Sequence

from eray._core.command import Command
from eray._slurm import variables as v
from eray._slurm.allocation import Allocation

_KEPT = (v.CONF, v.CLUSTER_NAME, v.RESTART_COUNT, *v.JOB_FACTS)
_INPUT_PREFIXES = ("SLURM_", "SRUN_", "SBATCH_", "SALLOC_", "SLURMD_", "PMI_", "PMIX_")


def step_command(
    allocation: Allocation, argv: Sequence[str], environ: Mapping[str, str], *, no_kill: bool = False
) -> Command:
    """Return the srun command that runs ``argv`` once on each node, with all the devices that the job has there.

    srun reads dozens of options from the job's variables (a job of two tasks a node would start two), so the step
    gets an environment without them; what only tells facts about the job stays. Seen to work with Slurm 22.05.8.

    Args:
        allocation: the nodes to span.
        argv: the program and its arguments, the same on every node.
        environ: the environment of the shell or batch script.
        no_kill: let the step outlive a node that dies; the job needs ``--no-kill`` too.
    """
    # All the job's memory, whose size the tasks would not know otherwise.
    memory = [f"{name}={environ[name]}" for name in v.MEMORY if re.fullmatch(r"\w+", environ.get(name, ""))]
    options = [
        "--ntasks-per-node=1",
        "--overlap",
        "--cpu-bind=none",
        "--mem=0",
        f"--export={','.join(['ALL', *memory])}",
    ]
    if allocation.het_groups:
        spread = [f"--het-group={','.join(str(group) for group in allocation.het_groups)}"]
    else:
        spread = [f"-N{len(allocation.nodes)}", f"-n{len(allocation.nodes)}"]
        options += [f"--gres=gpu:{allocation.gpus_per_node}"] if allocation.gpus_per_node else []
    options += ["--no-kill", "--kill-on-bad-exit=0"] if no_kill else []
    return Command(("srun", *spread, *options, *argv), step_environment(allocation, environ))


def step_environment(allocation: Allocation, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for a step that spans the allocation: no option of srun is left in it.

    The components of a heterogeneous job are the exception. Only by these variables can each have its own number of
    nodes in one step: ``-N`` applies to all, and Slurm 22.05 refuses ``A : B`` when B has several nodes. Their GPUs
    come as ``sbatch --gres`` gave them.
    """
    env = {name: value for name, value in environ.items() if _is_kept(name)}
    env[v.JOB_ID[0]] = allocation.job.id
    for group, nodes in zip(allocation.het_groups, allocation.groups, strict=True):
        for name in (v.JOB_NUM_NODES[1], v.NTASKS):
            env[f"{name}{v.HET_SUFFIXES[0]}{group}"] = str(len(nodes))
    return env


def _is_kept(name: str) -> bool:
    return name in _KEPT or name.startswith(v.ARRAY_PREFIX) or not name.startswith(_INPUT_PREFIXES)
