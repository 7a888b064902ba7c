"""What must be quick without any Ray: ``import eray`` over bare Python, and ``eray plan``."""

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from statistics import median

from ways import HERE

IMPORT_MS, PLAN_S = 30, 0.4


def measure(runs: int) -> dict[str, float]:
    """Return medians, the three commands in turns."""
    times: dict[str, list[float]] = {"bare": [], "import": [], "plan": []}
    for _ in range(max(runs, 3) * 4):
        times["bare"].append(_seconds(["-c", "pass"]))
        times["import"].append(_seconds(["-c", "import eray"]))
        times["plan"].append(_seconds(["-m", "eray", "plan"]))
    bare, imported, plan = (median(times[name]) for name in ("bare", "import", "plan"))
    return {"import_ms": 1000 * (imported - bare), "plan_s": plan, "bare_s": bare}


def show(found: dict[str, float]) -> None:
    """Print them beside their targets."""
    print(f"import eray over bare Python   {found['import_ms']:6.1f} ms   target {IMPORT_MS} ms")
    print(f"eray plan, whole process       {found['plan_s']:6.2f} s    target {PLAN_S} s", flush=True)


def _seconds(words: Sequence[str]) -> float:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "ERAY_"))}
    started = time.perf_counter()
    subprocess.run(
        [sys.executable, *words],
        env={**env, "PYTHONPATH": str(HERE.parents[1])},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    return time.perf_counter() - started
