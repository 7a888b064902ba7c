"""Measure what eray adds to the memory of a process and of a node.

    python tests/benchmarks/memory.py [--runs 3] [--json FILE]

Two processes of ``eray run -n 2`` after their first collective, attached by each of the two ways (ERAY_ATTACH), beside
the same program that knows its place without eray. Then what else runs on the node: the supervisor, Ray's daemons, the
coordinator. MiB of PSS: what a process has to itself, and its share of what others have too. A node's part does not
grow with its processes, the coordinator's with the world (``scale.py``). Always exits 0: it measures.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

from memory_program import PROCESSES
from ways import HERE

from eray._io.ports import free_port

PROGRAM = [sys.executable, str(HERE / "memory_program.py")]
WAYS = {"without eray": None, "eray": {}, "eray, on demand": {"ERAY_ATTACH": "demand"}}
TIMEOUT_S = 120
PARTS = {
    "the coordinator": "ray::Coordinator",
    "Ray's agents": "ray::RuntimeEnvAgent|quiet_agent",
    "`ray start`": "ray_start",
    "GCS": "gcs_server",
    "raylet": "raylet/raylet",
    "its guard": "guard.py",
    "the supervisor": "-m eray",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3, help="runs of each way; medians are shown (default: 3)")
    parser.add_argument("--json", metavar="FILE", help="write every run there")
    args = parser.parse_args()
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs before", flush=True)
    found: dict[str, list[list[dict[str, Any]]]] = {way: [] for way in WAYS}
    with tempfile.TemporaryDirectory(prefix="eb", dir="/tmp") as home:
        for _ in range(args.runs):
            for way, more in WAYS.items():
                found[way].append(run(home, more))
    bare = median(each["own"] for told in found["without eray"] for each in told)
    for way, runs in found.items():
        own = median(each["own"] for told in runs for each in told)
        print(f"{way:16} a process {own:6.0f} MiB, {own - bare:+5.0f}")
        for part, mib in parts([told[0]["others"] for told in runs]).items():
            print(f"{'':16}   {part:16} {mib:6.0f} MiB")
    if args.json:
        Path(args.json).write_text(json.dumps(found, indent=1) + "\n")


def run(home: str, more: Mapping[str, str] | None) -> list[dict[str, Any]]:
    """Run the program's processes once, by ``eray run`` with more variables or without eray; return what they told."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("ERAY_", "RAY_", "SLURM", "JAX_"))}
    env |= {"HOME": home, "ERAY_TMPDIR": home, "PYTHONPATH": str(HERE.parents[1]), **(more or {})}
    if more is None:
        address = f"127.0.0.1:{free_port()}"
        commands = [[*PROGRAM, address, str(index)] for index in range(PROCESSES)]
    else:
        commands = [[sys.executable, "-m", "eray", "run", "-n", str(PROCESSES), "--", *PROGRAM]]
    started = [subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) for command in commands]
    output = "".join(each.communicate(timeout=TIMEOUT_S)[0] for each in started)
    told = [json.loads(line) for line in re.findall(r"memory (\{.*\})", output)]
    if len(told) != PROCESSES:
        raise SystemExit(f"{commands[0]}: {output}")
    return sorted(told, key=lambda one: int(one["index"]))


def parts(runs: list[list[tuple[str, float]]]) -> dict[str, float]:
    """Return the median memory of each part of a node's own processes."""
    sums = []
    for others in runs:
        found: dict[str, float] = {}
        for words, mib in others:
            part = next((part for part, pattern in PARTS.items() if re.search(pattern, words)), words[:40])
            found[part] = found.get(part, 0.0) + mib
        sums.append(found)
    names = dict.fromkeys(name for found in sums for name in found)
    return {name: median(found.get(name, 0.0) for found in sums) for name in names}


if __name__ == "__main__":
    main()
