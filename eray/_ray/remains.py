"""What is left of a world's processes on their nodes: the last lines that they wrote, and whether they are gone."""

import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ray
import ray.exceptions
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from eray._core.last_lines import EXPECTED
from eray._io import limits, process
from eray._io.logs import MARKS, last_lines
from eray._io.reading import text_of

TAIL_LINES = 20
GONE_S, KILL_S = 10.0, 2.0
REACH_S = 5.0
"""How long a node may take to start the task that looks there."""


@dataclass(frozen=True)
class LastWords:
    """The end of a process's stderr, and what the kernel did to it where that is known."""

    tail: tuple[str, ...] = ()
    killed: str | None = None


def last_words(process: tuple[str, tuple[str, int]]) -> LastWords:
    """Return what is left of a process of this node, given its stderr and what ``memory_kills_here`` told there.

    The tail is without the marks that Ray's log monitor reads in it, and what JAX says in each world.
    """
    stderr, (group, before) = process
    lines = last_lines(stderr, TAIL_LINES + len(MARKS) + 1) if stderr else []
    tail = [line for line in lines if not line.startswith(MARKS) and EXPECTED not in line][-TAIL_LINES:]
    own_group, now = memory_kills_here()
    return LastWords(tuple(tail), limits.memory_words() if own_group == group and now > before else None)


def memory_kills_here() -> tuple[str, int]:
    """Return this process's control groups, and how many processes the kernel has killed there for memory."""
    return text_of("/proc/self/cgroup"), limits.memory_kills()


def end_all(lives: Sequence[tuple[int, int]]) -> bool:
    """Wait until these processes of this node, (pid, start time), are dead; kill what does not go by itself."""
    left = process.wait_gone([process.Identity(*life) for life in lives], KILL_S)
    for each in left:
        process.kill(each, signal.SIGKILL)
    return not process.wait_gone(left, GONE_S - KILL_S)


def on_nodes(call: Callable[[Any], Any], asked: Mapping[str, Any], longest_s: float = 0.0) -> dict[str, Any]:
    """Return what ``call(asked[node])`` returns on each node, by Ray's id; a node that does not answer is left out.

    ``longest_s`` is how long the call itself may take.
    On this node it is a plain call, elsewhere a task that takes no CPU.
    """
    here = str(ray.get_runtime_context().get_node_id())
    task: Any = ray.remote(num_cpus=0, max_retries=0)(call)
    refs = {
        node: task.options(scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False)).remote(argument)
        for node, argument in asked.items()
        if node != here
    }
    answers = {here: call(asked[here])} if here in asked else {}
    ready, late = (
        ray.wait(list(refs.values()), num_returns=len(refs), timeout=REACH_S + longest_s) if refs else ([], [])
    )
    for ref in late:
        ray.cancel(ref, force=True)
    for node, ref in refs.items():
        if ref in ready:
            try:
                answers[node] = ray.get(ref, timeout=1.0)
            except ray.exceptions.RayError:
                continue  # the node is lost
    return answers
