"""The processes of a world that this node's supervisor starts: who they are, and their end."""

import asyncio
import logging
import os
import shutil
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from eray._core.exec_failure import exec_failure
from eray._core.nodespec import NodeSpec, WorldSpec
from eray._core.process_variables import device_variables, identity_variables
from eray._io import limits, process
from eray._io.log_lines import log_change
from eray._io.output import is_one_output
from eray._ray.children import Children
from eray._ray.commands import ray_defaults, ray_variables

logger = logging.getLogger(__name__)

LEAVE_S = 1.0
"""How long processes that heard of a failure may take to leave by themselves."""
GRACE_S = 3.0
"""How long they may take after SIGTERM."""
_NOT_THEIRS = ("ERAY_SECRET", "RAY_AUTH_TOKEN", "RAY_ADDRESS", "RAY_API_SERVER_ADDRESS")
"""Secrets, for they have the token's path, and another cluster's addresses, which a shell with `eray env` hands on."""


class WorldProcesses:
    """Starts this node's processes of one generation after the other, and tells by ``emit`` how each ends.

    ``world`` has the processes of the generation that is. ``is_between`` while one is ended for the next: how its
    processes end is no news then.
    """

    def __init__(
        self,
        spec: NodeSpec,
        environ: Mapping[str, str],
        emit: Callable[[Mapping[str, Any]], None],
        started: Callable[[int], None],
    ) -> None:
        self._spec, self._environ, self._emit = spec, environ, emit
        self._children = Children(self._ended, started)
        self._turn = asyncio.Lock()
        self._stopping, self._memory_kills = False, limits.memory_kills()
        self.world, self.generation, self.is_between = spec.world, 1, False

    @property
    def count(self) -> int:
        """How many of them run."""
        return self._children.count

    async def start(self, generation: int, per_node: Sequence[int]) -> None:
        """Start the processes of a generation that are this node's."""
        assert self._spec.world is not None
        async with self._turn:
            self.world = replace(self._spec.world, per_node=tuple(per_node))
            self.generation, self.is_between = generation, False
            await self._start_own(self.world)

    async def end(self, generation: int, told: Callable[[float], Awaitable[None]]) -> None:
        """End the processes of a generation, and tell when none is left; ``told`` returns when they have heard why."""
        self.is_between = True
        async with self._turn:
            await told(1.0)
            await self._children.stop(LEAVE_S, GRACE_S)
            self._emit({"type": "processes-stopped", "generation": generation})

    async def stop(self, *, heard: bool) -> None:
        """End them all; ``heard`` tells that they know why and may leave by themselves."""
        self._stopping = True
        await self._children.stop(LEAVE_S if heard else 0.0, GRACE_S)

    def pass_on(self, number: int) -> None:
        """Send a signal to those of them that catch it."""
        self._children.pass_on(number)

    async def _start_own(self, world: WorldSpec) -> None:
        spec, defaults = self._spec, ray_defaults(has_dashboard=self._spec.dashboard)
        environ = {**defaults, **self._environ, **ray_variables(spec)}
        for process_index, (rank, local_index, _, _) in enumerate(world.layout(spec.nodes)):
            if rank != spec.node_rank or self._stopping:
                continue
            env = child_environment(spec, world, environ, self.generation, process_index, local_index)
            try:
                pid = await self._children.start(process_index, world.argv, env)
                log_change(logger, "process-started", **self._ids(process_index), child_pid=pid)
            except OSError as exc:
                program = world.argv[0]
                on_path = shutil.which(program, path=env["PATH"]) is not None
                why = exec_failure(
                    program,
                    exc.errno,
                    str(exc.strerror),
                    on_path=on_path,
                    is_directory=os.path.isdir(program),
                )
                cause = f"process {process_index} on {spec.node} cannot be started: {exc.strerror}: {program!r}"
                self._emit_end(process_index, why.code, f"{cause}; {why.reason} ({why.code})", "")
                return

    def _ids(self, process_index: int) -> dict[str, Any]:
        assert self.world is not None
        ids = {"world": self.world.name, "generation": self.generation, "process_index": process_index}
        return {**ids, "node": self._spec.node}

    def _ended(self, process_index: int, pid: int, code: int, tail: str, is_last: bool) -> None:
        if self._stopping or self.is_between:
            log_change(logger, "process-ended", **self._ids(process_index), code=process.exit_code(code))
        if not self._stopping and not self.is_between:
            cause = f"process {process_index} on {self._spec.node} (pid {pid}) {self._words(code)}"
            shown = is_last and self._spec.node_rank == 0 and is_one_output()
            self._emit_end(process_index, process.exit_code(code), cause, tail, shown=shown)

    def _words(self, code: int) -> str:
        """Return how a process ended; where the kernel killed one for memory since we last looked, that it did."""
        before, self._memory_kills = self._memory_kills, limits.memory_kills()
        if code != -signal.SIGKILL or self._memory_kills == before:
            return process.exit_words(code, in_job=self._spec.job is not None)
        return limits.memory_words()

    def _emit_end(self, process_index: int, code: int, cause: str, tail: str, *, shown: bool = False) -> None:
        log_change(logger, "process-ended", **self._ids(process_index), code=code, cause=cause if code else None)
        end = {"process_index": process_index, "generation": self.generation, "code": code}
        self._emit({"type": "child-ended", **end, "cause": cause, "tail": tail, "shown": shown})


def child_environment(
    spec: NodeSpec,
    world: WorldSpec,
    environ: Mapping[str, str],
    generation: int,
    process_index: int,
    local_index: int,
) -> dict[str, str]:
    """Return the environment in which process ``process_index`` learns who it is.

    ``--devices-per-process`` asks JAX for that many CPU devices, and on a node with accelerators names the process's
    ordinals; nothing rewrites the visible devices. Python's own directory comes first on PATH, so that ``python`` is
    the one that runs eray, also when its environment is not activated.
    """
    env = {name: value for name, value in environ.items() if name not in _NOT_THEIRS}
    env |= identity_variables(world.name, generation, process_index, world.process_count)
    env |= {
        "ERAY_RUN_DIR": spec.run_dir,
        "PYTHONUNBUFFERED": env.get("PYTHONUNBUFFERED", "1"),
        "PATH": os.pathsep.join([os.path.dirname(sys.executable), env.get("PATH", os.defpath)]),
    }
    each = world.devices_per_process
    if each is not None:
        env |= device_variables(each, env.get("XLA_FLAGS", ""))
        if spec.gpus_on_node or spec.hardware_count:
            ordinals = range(local_index * each, (local_index + 1) * each)
            env.setdefault("ERAY_DEVICES", ",".join(map(str, ordinals)))
    return env
