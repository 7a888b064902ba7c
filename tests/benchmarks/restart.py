"""Time a restart beside the first start: from a SIGKILL of one process until all of the next generation are connected.

    python tests/benchmarks/restart.py [--runs 5] [--processes 2]

The same ``eray run --max-restarts 1`` gives both: from the command to the first generation's last ``connect()``, and
from the kill to the second one's. Target: a restart takes no longer than a first start. Always exits 0.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

PROGRAM = """
import os, signal, time
import eray
with eray.connect() as conn:
    print("stamp", conn.generation, time.time(), flush=True)
    conn.barrier("all are here")
    if conn.generation == 1:
        if conn.process_index == conn.process_count - 1:
            print("stamp killed", time.time(), flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        signal.pause()
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5, help="medians are shown (default: 5)")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs")
    with tempfile.TemporaryDirectory(prefix="eb", dir="/tmp") as home:
        (Path(home) / "program.py").write_text(PROGRAM)
        pairs = [_run(home, options.processes) for _ in range(options.runs)]
    first, again = median(pair[0] for pair in pairs), median(pair[1] for pair in pairs)
    for start_s, restart_s in pairs:
        print(f"  first start {start_s:.2f} s, restart {restart_s:.2f} s")
    print(f"medians: first start {first:.2f} s, restart {again:.2f} s, ratio {again / first:.2f} (target: at most 1)")


def _run(home: str, processes: int) -> tuple[float, float]:
    """Return the seconds of the first start and of the restart."""
    started = time.time()
    command = [sys.executable, "-m", "eray", "run", "-n", str(processes), "--max-restarts", "1", "--", sys.executable]
    env = {name: value for name, value in os.environ.items() if not name.startswith(("ERAY_", "RAY_", "SLURM", "JAX_"))}
    env |= {"HOME": home, "ERAY_TMPDIR": home, "ERAY_STATE_DIR": f"{home}/.eray"}
    done = subprocess.run(
        [*command, f"{home}/program.py"], env=env, capture_output=True, text=True, check=True, timeout=120
    )
    stamps = {key: [float(at) for at in re.findall(rf"stamp {key} ([0-9.]+)", done.stdout)] for key in "12"}
    killed = re.search(r"stamp killed ([0-9.]+)", done.stdout)
    assert killed is not None, done.stdout
    assert len(stamps["1"]) == len(stamps["2"]) == processes, done.stdout
    return max(stamps["1"]) - started, max(stamps["2"]) - float(killed[1])


if __name__ == "__main__":
    main()
