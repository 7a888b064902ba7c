"""The environment of a process that a supervisor starts."""

import os
import sys
from collections.abc import Mapping

from eray._core.nodespec import NodeSpec

_SECRET = ("ERAY_SECRET", "RAY_AUTH_TOKEN")
FORCED_CPU_DEVICES = "--xla_force_host_platform_device_count"


def child_environment(
    spec: NodeSpec, environ: Mapping[str, str], generation: int, process_index: int, local_index: int
) -> dict[str, str]:
    """Return the environment in which process ``process_index`` learns who it is.

    ``--devices-per-process`` asks JAX for that many CPU devices, and on a node with accelerators names the process's
    ordinals; nothing rewrites the visible devices. Python's own directory comes first on PATH, so that ``python`` is
    the one that runs eray, also when its environment is not activated.
    """
    world = spec.world
    assert world is not None
    env = {name: value for name, value in environ.items() if name not in _SECRET}  # they have the token's path
    env |= {
        "ERAY_WORLD": world.name,
        "ERAY_GENERATION": str(generation),
        "ERAY_PROCESS_INDEX": str(process_index),
        "ERAY_PROCESS_COUNT": str(world.process_count),
        "ERAY_RUN_DIR": spec.run_dir,
        "PYTHONUNBUFFERED": env.get("PYTHONUNBUFFERED", "1"),
        "PATH": os.pathsep.join([os.path.dirname(sys.executable), env.get("PATH", os.defpath)]),
    }
    each = world.devices_per_process
    if each is not None:
        env["ERAY_DEVICES_PER_PROCESS"] = str(each)
        if FORCED_CPU_DEVICES not in env.get("XLA_FLAGS", ""):
            env["JAX_NUM_CPU_DEVICES"] = str(each)
        if spec.gpus_on_node or spec.hardware_count:
            ordinals = range(local_index * each, (local_index + 1) * each)
            env.setdefault("ERAY_DEVICES", ",".join(map(str, ordinals)))
    return env
