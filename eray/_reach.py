"""Reach the cluster: by this node's supervisor, started where this process is the first to call, or a foreign Ray."""

import json
import os
import select
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from filelock import FileLock, Timeout

from eray._core.nodespec import NodeSpec
from eray._core.timing import Deadline
from eray._io import clock, files
from eray._io.link import Link
from eray._io.lock import SPAWN_LOCK
from eray._ray import home
from eray._ray.refusal import tell_others
from eray.errors import ClusterError, ClusterLostError, DirectoryError, ErayError, NodesMissingError, error_of

HEAD_FIRST_S = 5.0
"""How much later a process's own deadline is than the head's, which can name the node that is missing."""
STUCK = "see whether name resolution or a file system hangs on that node, and its messages above"


@dataclass(frozen=True)
class Access:
    """How this process reaches its cluster, and which node it is on. ``place`` is what the supervisor knows of it.

    ``outlives_others``: Slurm ends this node's supervisor, the head's, with the last process here (FACTS S15).
    """

    node: dict[str, Any]
    place: dict[str, int]
    outlives_others: bool
    link: Link | None


def foreign_access(ray_address: str, namespace: str) -> Access:
    """Attach to a Ray that eray did not start; an empty address is that of the Ray that this process is attached to."""
    from eray._ray import foreign

    return Access(foreign.attach(ray_address or None, namespace=namespace)[1], {}, False, None)


def reach(spec: NodeSpec, environ: Mapping[str, str], cpus: frozenset[int] | None, timeout_s: float) -> Link:
    """Return the line to this node's supervisor; the first process of the node starts it.

    ``cpus`` are those that the supervisor may use, None for all that the kernel grants.

    Raises:
        ErayError: what the supervisor says that it cannot serve for.
        ClusterError: it does not answer in time.
    """
    deadline = Deadline.after(timeout_s, now=clock.monotonic())
    while True:
        try:
            files.private_directory(spec.run_dir, spec.tmpdir)
        except DirectoryError as exc:
            tell_others(spec, exc)
            raise
        if (link := _find(spec)) is not None:
            return link
        lock = FileLock(os.path.join(spec.run_dir, SPAWN_LOCK), mode=0o600)
        try:
            with lock.acquire(timeout=deadline.remaining_s(clock.monotonic())):
                if (link := _find(spec)) is None:
                    try:
                        _start(spec, environ, cpus, deadline)
                    except ErayError:
                        home.remove_unless_held(spec.run_dir, spawning=True)  # nobody else would
                        raise
                    link = open_link(spec.socket_path, spec.node)
                return link
        except FileNotFoundError:
            continue  # a supervisor that ended removed the directory while we waited
        except Timeout:
            raise ClusterLostError(
                spec.node, f"another process starts this node's supervisor since {timeout_s:g} s", "look at its output"
            ) from None


def _find(spec: NodeSpec) -> Link | None:
    try:
        return Link.open(spec.socket_path, spec.node)
    except OSError:
        return None


def open_link(path: str, node: str) -> Link:
    """Return the line to a supervisor that listens.

    Raises:
        ClusterLostError: it is gone.
    """
    try:
        return Link.open(path, node)
    except OSError as exc:
        raise ClusterLostError(
            node, f"its supervisor does not answer ({exc.strerror})", "see its last messages"
        ) from exc


def await_word(link: Link, kind: str, node: str, deadline: Deadline, progress: Callable[[str], None]) -> dict[str, Any]:
    """Return the supervisor's next word of a kind: ``welcome`` at once, ``ready`` when the cluster is.

    Raises:
        ErayError: the cluster failed.
        NodesMissingError: it is not ready in time.
    """
    while (message := link.receive(deadline.remaining_s(clock.monotonic()))) is not None:
        if message["type"] == kind:
            return message
        if message["type"] == "progress":
            progress(str(message["text"]))
        elif message.get("error"):
            raise error_of(message["error"])
        elif message["type"] == "failed":
            raise ClusterError(str(message["cause"]))
    raise NodesMissingError(node, 1, deadline.timeout_s, "bring its cluster up")


def _start(spec: NodeSpec, environ: Mapping[str, str], cpus: frozenset[int] | None, deadline: Deadline) -> None:
    before = os.sched_getaffinity(0)
    _set_affinity(cpus or frozenset(range(os.cpu_count() or 1)))
    try:
        child = subprocess.Popen(
            [sys.executable, "-P", "-m", "eray", "node"],
            env=dict(environ),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # stderr is ours: one line of it names a failure of the cluster
        )
    finally:
        _set_affinity(before)
    assert child.stdin is not None
    assert child.stdout is not None
    with child.stdin, child.stdout:
        child.stdin.write(spec.to_json().encode())
        child.stdin.close()
        said = _answer(child.stdout.fileno(), deadline)
    if said is None:
        child.kill()
        raise ClusterLostError(spec.node, f"`eray node` does not listen after {deadline.timeout_s:g} s", STUCK)
    if said.get("error"):
        raise error_of(said["error"])
    if not said.get("listening"):
        raise ClusterLostError(spec.node, f"`eray node` ended with code {child.wait()}", "see its message above")


def _answer(descriptor: int, deadline: Deadline) -> dict[str, Any] | None:
    """Return the supervisor's first word, empty when it ended without one, None when the time is over."""
    text = b""
    while True:
        *lines, text = text.split(b"\n")
        for line in lines:
            with suppress(ValueError):  # a line of somebody else's, as of a sitecustomize that prints
                if isinstance(said := json.loads(line), dict):
                    return said
        if not select.select([descriptor], [], [], deadline.remaining_s(clock.monotonic()))[0]:
            return None
        if not (data := os.read(descriptor, 65_536)):
            return {}
        text += data


def _set_affinity(cpus: frozenset[int] | set[int]) -> None:
    # The kernel keeps to the CPUs of the job's cpuset, whatever is asked; a mask without any of them is refused.
    with suppress(OSError):
        os.sched_setaffinity(0, cpus)
