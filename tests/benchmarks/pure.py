"""Time what eray computes without any Ray: the plan of a world, and host lists beside two libraries.

    python tests/benchmarks/pure.py [--runs 20]

CPU seconds of this process, the best of the runs. Targets: a plan for 10,000 processes in 0.5 s and linear growth; host
lists in half of what the faster library takes. The libraries are compared where they are installed
(``pip install python-hostlist ClusterShell``). Always exits 0: it measures, and tests nothing.
"""

import argparse
import importlib
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from crowd import request

from eray import expand_hostlist
from eray._core.blocks import Blocks
from eray._core.plan import planned
from eray._core.world import JoinRequest, Member, new_world, with_member

SIZES = (1_000, 10_000, 100_000)
LISTS = {
    "two ranges": "node[000001-050000],node[050001-100000]",
    "1,000 ranges": ",".join(f"rack{rack}-n[1-100]" for rack in range(1000)),
    "two brackets": "r[1-100]n[001-1000]",
}
LIBRARIES = {"python-hostlist": ("hostlist", "expand_hostlist"), "ClusterShell": ("ClusterShell.NodeSet", "expand")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20, help="runs of each; the best is shown (default: 20)")
    runs = parser.parse_args().runs
    for size in SIZES:
        world = full_world(size)
        seconds = best_s(partial(planned, world, {}, 0.0), max(runs * SIZES[0] // size, 2))
        print(
            f"plan of {size:7} processes  {1000 * seconds:8.1f} ms, {1e6 * seconds / size:5.1f} µs a process",
            flush=True,
        )
    expanders = {"eray": expand_hostlist, **dict(libraries())}
    for name, text in LISTS.items():
        cells = (f"{who} {expanded(call, text, runs)}" for who, call in expanders.items())
        print(f"100,000 names, {name:12}  {', '.join(cells)}", flush=True)


def full_world(count: int) -> Any:
    """Return a world of which all processes have joined, eight a node."""
    world = new_world("main", 1, count)
    members = [Member.of(JoinRequest.model_validate(request("main", index, count))) for index in range(count)]
    reached = with_member(new_world("main", 1, 1), 0, members[0]).reached
    return world.model_copy(update={"members": Blocks(members), "reached": tuple(count * each for each in reached)})


def libraries() -> Iterator[tuple[str, Callable[[str], Any]]]:
    """Yield those that are installed."""
    for name, (module, function) in LIBRARIES.items():
        try:
            call = getattr(importlib.import_module(module), function)
        except ImportError:
            print(f"{name} is not installed", flush=True)
            continue
        yield name, partial(call, allow_duplicates=True) if module == "hostlist" else call


def expanded(call: Callable[[str], Any], text: str, runs: int) -> str:
    """Return how long a host list takes, as text."""
    try:
        return f"{1000 * best_s(partial(call, text), runs):.1f} ms"
    except Exception as exc:
        return f"refuses it ({type(exc).__name__})"


def best_s(call: Callable[[], Any], runs: int) -> float:
    """Return the fewest CPU seconds that a call took."""
    found = []
    for _ in range(runs):
        before = time.process_time()
        kept = call()
        found.append(time.process_time() - before)
        del kept
    return min(found)


if __name__ == "__main__":
    main()
