"""One turn on the Slurm rig, without pytest: take its lock, bring it up, and take all down at the end."""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ways import HERE, JAX_PORT, RAY_PORT, Command

sys.path[:0] = [str(HERE.parent / "slurm"), str(HERE.parent)]

import conftest  # noqa: E402
import pytest  # noqa: E402
from slurm_rig import GUARD, SCRIPT, USER, Rig, owner  # noqa: E402


class RigUnavailable(Exception):
    """The rig cannot be used here or now; the text says why."""


@contextlib.contextmanager
def rig_turn(patience_s: float) -> Iterator[Rig]:
    """Bring the rig up for this process alone.

    Raises:
        RigUnavailable: it cannot run here, or others use it for longer than ``patience_s``.
    """
    if reason := conftest._why_not():
        raise RigUnavailable(reason)
    with open(conftest.LOCK, "w") as lock:
        if not conftest._locked(lock, timeout_s=patience_s):
            raise RigUnavailable(f"others use the Slurm rig ({conftest.LOCK}): {owner()}")
        share = Path(tempfile.mkdtemp(prefix="eray-rig-", dir="/var/tmp"))
        guard = subprocess.Popen(
            ["/bin/sh", "-c", GUARD, SCRIPT, share, str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
            pass_fds=[lock.fileno()],
        )
        try:
            yield _furnished(share)
        except (pytest.skip.Exception, pytest.fail.Exception) as exc:
            raise RigUnavailable(str(exc)) from exc
        finally:
            assert guard.stdin is not None
            guard.stdin.close()
            guard.wait(60)


def _furnished(share: Path) -> Rig:
    rig = conftest._up(share)
    shutil.copytree(HERE, rig.tree / "tests" / "benchmarks", ignore=shutil.ignore_patterns("__pycache__"))
    ray = share / "bin" / "ray"  # `ray symmetric-run` calls it by name
    ray.write_text(f'#!/bin/sh\nexec {rig.python} -m ray.scripts.scripts "$@"\n')
    ray.chmod(0o755)
    return rig


class RigNode:
    """One node of the rig, entered as by ssh: a machine of its own, and nobody's but ours."""

    has_own_pids = True

    def __init__(self, rig: Rig, node: str) -> None:
        self._rig, self.name, self.python = rig, f"{node} of the rig", rig.python
        self._node, self.scripts = node, rig.tree / "tests" / "benchmarks"

    def command(self, argv: Sequence[str], env: Mapping[str, str]) -> Command:
        entered = [str(SCRIPT), "exec", self._node, *plain_user(), *argv]
        return Command(tuple(entered), self._rig.environment() | dict(env), str(self._rig.tree))

    def ray(self) -> dict[str, str]:
        """Return what by_hand_local.sh needs; all of Ray's defaults are free here."""
        address = socket.gethostbyname(self._node)
        return {"IP": address, "PORT": str(RAY_PORT), "JAX_PORT": str(JAX_PORT), "RAY_OPTIONS": ""}


def plain_user() -> list[str]:
    """Return the words before a command that make it the plain user's."""
    return ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--init-groups"]


def node_pids(rig: Rig) -> list[int]:
    """Return what runs on the rig's nodes, as the host numbers it."""
    return [process.host_pid for node in rig.nodes for process in rig.processes(node)]
