"""Time the start: from a command to the first collective, beside the same by hand and by ``ray symmetric-run``.

    python tests/benchmarks/startup.py [--runs 3] [--warm-up] [--only w1,w2,w5] [--no-rig] [--json FILE]

W5 is one process, W1 four by ``eray run -n 4``, both inside one node of the Slurm rig where there is one (``ray
symmetric-run`` needs that), else on this machine; W2 is ``srun -N2 --ntasks-per-node=2`` as the plain user. The ways
take turns, so that what else the machine does hits all alike. Wall time ends when the last process has its first
collective, on the clock of the process; CPU time is that of all processes of all nodes until then (``cpu_meter.py``),
those daemons included that do not matter yet. Of eray's best run the critical path, its phases and their floor
follow (``floor.py``). Always exits 0: it measures, and tests nothing.
"""

import argparse
import contextlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import floor
import small_things
from cpu_meter import CpuMeter
from report import Table
from rig_turn import RigNode, RigUnavailable, node_pids, plain_user, rig_turn
from slurm_rig import Rig
from timed_run import TimedRun, run
from ways import Command, Host, local_commands, slurm_commands

from eray._core.picture import Picture

Ways = dict[str, Callable[[], Command]]
SETTLE_S = 15.0


def main() -> None:
    args = _arguments()
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs before", flush=True)
    found: dict[str, Any] = {"small things": small_things.measure(args.runs)}
    small_things.show(found["small things"])
    with contextlib.ExitStack() as stack:
        meter = CpuMeter()
        stack.callback(meter.close)
        rig = None if args.no_rig else _rig(stack, args.patience)
        if rig is not None:
            meter.adopt(node_pids(rig))
        for name, title, ways in _cases(args.only, rig, stack):
            table = Table(title, tuple(ways))
            pictures: dict[str, list[Picture]] = {way: [] for way in ways}
            for round_ in range(args.runs + args.warm_up):
                for way, command in ways.items():
                    _settle(meter)
                    due, began = command(), time.time()
                    done, counts = _timed(due, meter, way), round_ >= args.warm_up
                    table.take(way, done, counts=counts)
                    if counts and done.succeeded and (kept := floor.newest_picture(due.state_dir, began)) is not None:
                        pictures[way].append(kept)
            table.show()
            for way, kept_ones in pictures.items():
                floor.show(way, kept_ones, table.cpu_s(way))
            found[name] = table.to_json() | {"paths": {way: floor.as_json(kept) for way, kept in pictures.items()}}
    if args.json:
        Path(args.json).write_text(json.dumps(found, indent=1) + "\n")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3, help="runs of each way; medians are shown (default: 3)")
    parser.add_argument("--warm-up", action="store_true", help="one more run of each way first, which does not count")
    parser.add_argument("--only", default="w5,w1,w2", help="a selection, such as w1,w5")
    parser.add_argument("--no-rig", action="store_true", help="W1 and W5 on this machine, without symmetric-run")
    parser.add_argument("--patience", type=float, default=60.0, metavar="S", help="how long to wait for the rig")
    parser.add_argument("--json", metavar="FILE", help="write every run's events there")
    return parser.parse_args()


def _rig(stack: contextlib.ExitStack, patience_s: float) -> Rig | None:
    try:
        return stack.enter_context(rig_turn(patience_s))
    except RigUnavailable as exc:
        print(f"without the rig, and so without W2 and symmetric-run: {exc}", flush=True)
        return None


def _cases(only: str, rig: Rig | None, stack: contextlib.ExitStack) -> Iterator[tuple[str, str, Ways]]:
    host = Host()
    stack.callback(host.clear)
    place = host if rig is None else RigNode(rig, rig.nodes[0])
    wanted = only.lower().split(",")
    if "w5" in wanted:
        yield "w5", f"W5: one process on {place.name}", local_commands(place, 1)
    if "w1" in wanted:
        yield "w1", f"W1: four processes on {place.name} (eray run -n 4)", local_commands(place, 4)
    if "w2" in wanted and rig is not None:
        ways = slurm_commands(rig.python, rig.tree / "tests" / "benchmarks", rig.environment(), str(rig.tree))
        words = tuple(plain_user())
        yield (
            "w2",
            "W2: four processes on two nodes of the rig (srun -N2 --ntasks-per-node=2)",
            {name: _as_user(words, command) for name, command in ways.items()},
        )


def _as_user(words: tuple[str, ...], command: Callable[[], Command]) -> Callable[[], Command]:
    def prefixed() -> Command:
        inner = command()
        return replace(inner, argv=(*words, *inner.argv))

    return prefixed


def _timed(command: Command, meter: CpuMeter, way: str) -> TimedRun:
    done = run(command, meter)
    if not done.succeeded:
        print(f"{way} failed with code {done.code}:\n{done.output}", file=sys.stderr, flush=True)
    return done


def _settle(meter: CpuMeter, daemons: dict[int, frozenset[int]] = {}) -> None:  # noqa: B006
    """Wait until what the last run started is gone, so that its end does not count for the next."""
    usual = daemons.setdefault(id(meter), meter.pids())
    deadline = time.monotonic() + SETTLE_S
    while meter.pids() - usual and time.monotonic() < deadline:
        time.sleep(0.1)


if __name__ == "__main__":
    main()
