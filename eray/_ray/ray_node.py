"""One Ray node: start it, know when it is ready, notice when it ends, stop it by its own handle."""

import asyncio
import contextlib
import glob
import os
import subprocess
from collections.abc import Sequence

from eray._core.command import Command
from eray._core.nodespec import START_LOG, NodeSpec
from eray._io import clock, files, logs, process
from eray._io.deaths import children, first_gone
from eray.errors import RayStartError

POLL_S = 0.02
SETTLE_S = 0.5
LOOK_S = 0.05
"""How often it is seen whether Ray's daemons are there, while they start."""
LINES = 15
NODE_ID = "*[0-9a-f]"  # hexadecimal; Ray writes NAME.tmp first and renames it


class RayNode:
    """A child ``ray start --block`` and the daemons it started."""

    def __init__(self, spec: NodeSpec, command: Command) -> None:
        self._spec, self._command = spec, command
        self._child: subprocess.Popen[bytes] | None = None
        self._end: asyncio.Task[str] | None = None
        self._stopping = False

    def start(self) -> int:
        """Start Ray, its output going to the log file, and return the pid of the ``ray start`` that stays."""
        self._child = process.spawn(
            self._command.argv, env=self._command.env, output=f"{self._spec.run_dir}/{START_LOG}"
        )
        self._end = asyncio.get_running_loop().create_task(self._watch(self._child.pid))
        return self._child.pid

    async def gcs_port(self, timeout_s: float) -> int:
        """Return the port of the head's GCS as soon as it has one (FACTS R8).

        Raises:
            RayStartError: Ray ended, or has none after ``timeout_s``.
        """
        path = await self._appears(f"gcs_server_port_{NODE_ID}", timeout_s, "its GCS has no port")
        with open(path, encoding="ascii") as stream:
            text = stream.read().strip()
        return int(text)

    async def ready(self, timeout_s: float) -> str:
        """Return Ray's node id when the raylet is registered, so that ``ray.init`` need not poll for it.

        The raylet's agents write the port files last; the raylet registers with GCS then, and dumps its state first
        thing after that (measured, Ray 2.60).

        Raises:
            RayStartError: Ray ended, or is not ready after ``timeout_s``.
        """
        for agent in ("runtime_env_agent_port", "dashboard_agent_listen_port"):
            path = await self._appears(f"{agent}_{NODE_ID}", timeout_s, "its raylet is not ready")
        with contextlib.suppress(RayStartError):
            await self._appears("logs/debug_state.txt", SETTLE_S, "")
        return path.rpartition("_")[2]

    def metrics_port(self) -> int | None:
        """Return where the node's agent shows metrics, when the node is ready; None where it has none."""
        for path in glob.glob(os.path.join(self._spec.ray_dir, "session_latest", f"metrics_export_port_{NODE_ID}")):
            with open(path, encoding="ascii") as stream:
                port = int(stream.read())
            return port if port > 0 else None
        return None

    async def ended(self) -> str:
        """Wait until a process that the node cannot live without is gone, and say which."""
        assert self._end is not None
        return await self._end

    async def stop(self, grace_s: float) -> None:
        """End Ray and all it started: SIGTERM first, and SIGKILL for what is left after ``grace_s``, or at once.

        ``ray start`` itself ends its raylet and then its GCS, and gives each a second that it never uses otherwise.
        """
        if self._child is None or self._stopping:
            return
        self._stopping = True
        if self._end is not None:
            self._end.cancel()
        await asyncio.to_thread(process.terminate, self._child, grace_s)

    def last_words(self) -> str:
        """Return what a daemon that ended said of it. What `ray start` says comes a second later: it polls."""
        return self._last_lines(logs.LAST_WORDS) or "without a word, so killed: out of memory?"

    async def _watch(self, start: int) -> str:
        awaited, needed = {"raylet"} if self._spec.node_rank else {"raylet", "gcs_server"}, {start: "ray start"}
        gone = None
        while gone is None:
            needed |= {pid: name for pid, name in children(start).items() if name in awaited}
            awaited -= set(needed.values())
            gone = await first_gone(needed, LOOK_S if awaited else None)
        what = f"{needed[gone]} of node {self._spec.node} ended"
        short = files.shortages(self._spec.tmpdir, files.SHARED_MEMORY)
        return what if short is None else f"{what}, with {short}: free space there"

    async def _appears(self, pattern: str, timeout_s: float, otherwise: str) -> str:
        deadline = clock.monotonic() + timeout_s
        while True:
            # The globbed directory is a link that Ray renews, so that an earlier session's file is never found.
            found = glob.glob(os.path.join(self._spec.ray_dir, "session_latest", pattern))
            if found and os.path.getsize(found[0]):
                return found[0]
            if self._child is not None and (code := self._child.poll()) is not None:
                raise self._failed(f"`ray start` {process.exit_words(code, in_job=self._spec.job is not None)}")
            if self._end is not None and self._end.done():
                raise self._failed(self._end.result())
            if clock.monotonic() >= deadline:
                raise self._failed(f"{otherwise} after {timeout_s:g} s")
            await asyncio.sleep(POLL_S)

    def _failed(self, found: str) -> RayStartError:
        remedy = "its logs are kept in the job directory"
        if (short := files.shortages(self._spec.tmpdir, files.SHARED_MEMORY)) is not None:
            found, remedy = f"{found}, with {short}", files.MAKE_ROOM
        lines = self._last_lines((*logs.LAST_WORDS, START_LOG)) or "it left no log"
        return RayStartError(self._spec.node, f"Ray did not start: {found}; {lines}", remedy)

    def _last_lines(self, names: Sequence[str]) -> str:
        directories = logs.live_directories(self._spec.run_dir, self._spec.ray_dir)
        log = logs.telling_log(logs.logs_in(directories), names)
        lines = [] if log is None else logs.last_lines(log.path, LINES)
        return "\n  ".join([f"{os.path.basename(log.path)}:", *lines]) if log is not None and lines else ""
