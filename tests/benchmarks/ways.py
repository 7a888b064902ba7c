"""The commands that are timed: each way into eray beside the same by hand and by ``ray symmetric-run``.

By hand means a good hand: nothing waits for a fixed time, Ray's head is polled, and the processes start when it
answers, so that their imports run beside the rest of Ray's start. Ray has its default options; only where a machine is
shared (no rig) it gets ports and a temp directory of its own. ``ray symmetric-run`` ends in ``ray stop``, which ends
every Ray of the user's that it can see, and so runs nowhere but inside a rig node's own PID namespace.
"""

import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

HERE = Path(__file__).resolve().parent
RAY_PORT, JAX_PORT = 6379, 8476
EAGER, ON_DEMAND, BY_HAND, SYMMETRIC = "eray", "eray, on demand", "by hand", "symmetric-run"


@dataclass(frozen=True)
class Command:
    """What is to be run. ``enough`` first collectives end it, 0 for a command that is let run to its end."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str
    enough: int = 0

    @property
    def state_dir(self) -> str:
        """Where eray keeps how its clusters ended."""
        return os.path.join(self.env["HOME"], ".eray")


class Place(Protocol):
    """Where the ways of one machine run."""

    name: str
    python: str
    scripts: Path
    has_own_pids: bool

    def command(self, argv: Sequence[str], env: Mapping[str, str]) -> Command: ...
    def ray(self) -> dict[str, str]: ...


@dataclass
class Host:
    """This machine, which others may use too."""

    name: str = "this machine"
    python: str = sys.executable
    scripts: Path = HERE
    has_own_pids: bool = False
    _temporary: list[str] = field(default_factory=lambda: [tempfile.mkdtemp(prefix="eb", dir="/tmp")])

    def command(self, argv: Sequence[str], env: Mapping[str, str]) -> Command:
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM_", "ERAY_", "RAY_", "JAX_"))}
        tree = str(HERE.parents[1])
        return Command(tuple(argv), {**clean, "HOME": self._temporary[0], "PYTHONPATH": tree, **env}, tree)

    def ray(self) -> dict[str, str]:
        """Return what by_hand_local.sh needs, free of all other Rays here."""
        self._temporary.append(tempfile.mkdtemp(prefix="eb", dir="/tmp"))
        port, jax_port, *more = map(str, _free_ports(5))
        names = ("--ray-client-server-port", "--dashboard-port", "--dashboard-agent-listen-port")
        options = [f"--temp-dir={self._temporary[-1]}", *(f"{n}={p}" for n, p in zip(names, more, strict=True))]
        return {"IP": _own_address(), "PORT": port, "JAX_PORT": jax_port, "RAY_OPTIONS": " ".join(options)}

    def clear(self) -> None:
        for directory in self._temporary:
            shutil.rmtree(directory, ignore_errors=True)


def local_commands(place: Place, count: int) -> dict[str, Callable[[], Command]]:
    """Return the ways to ``count`` processes on one machine: W5 for one, else W1."""
    program = str(place.scripts / "first_collective.py")
    runner = [] if count == 1 else ["-m", "eray", "run", "-n", str(count), "--", place.python]

    def ours(**more: str) -> Command:
        return place.command([place.python, *runner, program], {"ERAY_LOG": "info", **more})

    def theirs(script: str) -> Command:
        return place.command(
            ["bash", str(place.scripts / script)], {**_baseline(place.python), "COUNT": str(count), **place.ray()}
        )

    ways = {EAGER: ours, ON_DEMAND: lambda: ours(ERAY_ATTACH="demand"), BY_HAND: lambda: theirs("by_hand_local.sh")}
    return ways | ({SYMMETRIC: lambda: theirs("symmetric_local.sh")} if place.has_own_pids else {})


def slurm_commands(python: str, scripts: Path, env: Mapping[str, str], cwd: str) -> dict[str, Callable[[], Command]]:
    """Return the ways to two processes on each of two nodes (W2). The clock starts when the allocation is there."""
    srun = f"srun -N2 --ntasks-per-node=2 {python} {scripts}/first_collective.py"
    ours = ("bash", "-c", f'echo "stamp start - $EPOCHREALTIME"; exec {srun}')
    theirs = {**_baseline(python), "PORT": str(RAY_PORT), "JAX_PORT": str(JAX_PORT)}

    def allocated(argv: Sequence[str], more: Mapping[str, str], enough: int) -> Command:
        return Command(("salloc", "--quiet", "-N2", "--ntasks-per-node=2", *argv), {**env, **more}, cwd, enough)

    return {
        EAGER: lambda: allocated(ours, {"ERAY_LOG": "info"}, 0),
        ON_DEMAND: lambda: allocated(ours, {"ERAY_LOG": "info", "ERAY_ATTACH": "demand"}, 0),
        BY_HAND: lambda: allocated(("bash", f"{scripts}/by_hand_slurm.sh"), theirs, 4),
        SYMMETRIC: lambda: allocated(("bash", f"{scripts}/symmetric_slurm.sh"), theirs, 4),  # else two minutes
    }


def _baseline(python: str) -> dict[str, str]:
    # Explicit: with an auth_token in the home half of Ray would ask for it, and half would not bring it (FACTS R2).
    return {"PYTHON": python, "RAY_AUTH_MODE": "disabled"}


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def _own_address() -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))  # sends nothing
        return str(probe.getsockname()[0])
