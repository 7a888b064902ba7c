"""The actor in whose process one process of a launched world lives."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ray

from eray._io import process
from eray._ray.parcel import Parcel
from eray._ray.remains import memory_kills_here

STDERR = "/proc/self/fd/2"


@dataclass(frozen=True)
class MemberPlace:
    """Who a process is, as its launcher tells it; ``gpus`` Ray gave it, ``devices`` (or None) the user asked for."""

    world: str
    generation: int
    process_index: int
    process_count: int
    gpus: int
    devices: int | None
    timeout_s: float


@dataclass(frozen=True)
class ActorFacts:
    """What an actor says of its process: one life of a pid, where its stderr goes, and the devices that Ray gave it.

    ``memory`` is its control groups, with how many processes the kernel has killed there for memory.
    """

    pid: int
    started: int
    stderr: str
    tokens: tuple[str, ...]
    memory: tuple[str, int]


Body = Callable[[MemberPlace, Callable[..., Any], Sequence[Any], dict[str, Any]], Parcel]


class GangProcess:
    """Runs one function as a process of a world, in its main thread."""

    def __init__(self, world: str) -> None:
        """``world`` is what Ray's log monitor puts before the process's output."""
        self._world = world

    def __repr__(self) -> str:
        return self._world

    def look(self) -> ActorFacts:
        """Return what can be known before the process has its place."""
        given = ray.get_runtime_context().get_accelerator_ids()
        tokens = tuple(token for found in given.values() for token in found)
        stderr = os.readlink(STDERR) if os.path.exists(STDERR) else ""
        return ActorFacts(os.getpid(), process.start_time(os.getpid()) or 0, stderr, tokens, memory_kills_here())

    def run(self, body: Body, place: MemberPlace, fn: Callable[..., Any], names: Sequence[str], *values: Any) -> Parcel:
        """Run ``fn`` as the process at ``place``; ``names`` are those of the last values, its keyword arguments."""
        split = len(values) - len(names)
        return body(place, fn, values[:split], dict(zip(names, values[split:], strict=True)))
