"""Which variables of an environment are shown to people: those that decide, and none that holds a secret."""

from collections.abc import Mapping

from eray._settings import Settings, settings_table

HIDDEN = frozenset({"ERAY_SECRET"})
OTHERS = frozenset(
    {
        *("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ZE_AFFINITY_MASK"),
        *("JAX_PLATFORMS", "XLA_FLAGS", "XLA_PYTHON_CLIENT_MEM_FRACTION", "RAY_ADDRESS"),
        *("http_proxy", "https_proxy", "no_proxy", "OMP_NUM_THREADS"),
    }
)
PREFIXES = ("SLURM_JOB_", "SLURM_STEP_", "SLURM_GPUS", "SLURM_NTASKS", "SLURM_CPU", "SLURM_MEM", "SLURM_HET")
NAMES = ("SLURM_NNODES", "SLURM_CLUSTER_NAME", "SLURM_DISTRIBUTION", "SLURM_TASKS_PER_NODE", "SLURM_RESTART_COUNT")
MAX_CHARACTERS = 500
TIMEOUTS = ("ERAY_CLUSTER_TIMEOUT_S", "ERAY_JOIN_TIMEOUT_S", "ERAY_DRAIN_TIMEOUT_S")


def timeouts_of(settings: Settings) -> dict[str, float]:
    """Return how long, in seconds, nodes and processes wait for others, by the variable that sets it."""
    return {row.variable: getattr(settings, name) for name, row in settings_table() if row.variable in TIMEOUTS}


def shown_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that decided how eray started, sorted, each value cut to 500 characters.

    A proxy's address may hold a password: what stands before ``@`` is left out.
    """
    names = {setting.variable for _, setting in settings_table()} - HIDDEN | OTHERS | {*NAMES}
    found = {}
    for name in sorted(environ):
        if name in names or name.startswith(PREFIXES):
            value = environ[name]
            if name.endswith("_proxy") and "@" in value:
                value = f"…@{value.rpartition('@')[2]}"
            found[name] = value if len(value) <= MAX_CHARACTERS else f"{value[: MAX_CHARACTERS - 1]}…"
    return found
