"""The job directory below the state directory: it serves people and the login node. Start-up never waits for it."""

import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from eray._core import naming
from eray._core.access import LIFE, START
from eray._core.nodespec import LOG_NAME, NodeSpec
from eray._io import clock, files, lives, logs
from eray._io.uptime import own_age_s
from eray._ray import home
from eray._ray.notices import SAID, say
from eray.errors import DirectoryError

MAX_LOG_BYTES = 32 * 1024 * 1024
KEPT_JOBS = 50
LONGEST_S = 180 * 86_400.0


def publish(spec: NodeSpec, about: Mapping[str, Any]) -> None:
    """Write the cluster's file, which only the user can read. The token is not in it: it follows from the secret."""
    try:
        directory = files.private_directory(_job_directory(spec), os.path.dirname(spec.state_dir))
        files.write_private_json(os.path.join(directory, naming.job_file("cluster", spec.key)), about)
    except DirectoryError as exc:
        say(f"the login node will not find this cluster, and how it ends is not kept: {exc}")


def begin(spec: NodeSpec) -> None:
    """Write where those who look from elsewhere find the head, before its Ray is up; then make room.

    The end takes it away and leaves a picture there.
    """
    with suppress(DirectoryError):  # `publish` says it, once
        if spec.job is not None:
            about = {"hosts": spec.head_hosts, "ports": spec.ports, "began_at": clock.unix() - own_age_s()}
            _write(spec, "beacon", spec.identity | about)
        else:
            _forget_killed(os.path.dirname(_path(spec, LIFE)))
            _write(spec, LIFE, home.own_life(spec))
    if spec.job is not None:
        with suppress(OSError):
            os.unlink(_path(spec, START))
    with suppress(OSError):
        prune(os.path.dirname(_job_directory(spec)))


def prune(jobs: str, keep: int = KEPT_JOBS) -> None:
    """Remove the directories of clusters that ended, but for those that did so last; raises OSError.

    A beacon's file tells that a cluster lives, or that its head was killed: those stay, for longer than any job runs.
    """
    ended, since = [], clock.unix() - LONGEST_S
    for entry in os.scandir(jobs):
        if entry.name != naming.LOCAL and entry.is_dir(follow_symlinks=False):
            at, written = entry.stat(follow_symlinks=False).st_mtime, os.listdir(entry.path)
            if at < since or not any(name.startswith("beacon.") for name in written):
                ended.append((at, entry.path))
    for _, path in sorted(ended, reverse=True)[keep:]:
        shutil.rmtree(path, ignore_errors=True)


def keep_picture(spec: NodeSpec, picture: Mapping[str, Any]) -> None:
    """Keep how the cluster was at its end; of those of this machine alone only the last one."""
    try:
        _write(spec, "picture", picture)
    except DirectoryError as exc:
        if spec.job is None:  # else `publish` has said it
            say(f"how this cluster ended is not kept for `eray status`: {exc}")
    with suppress(OSError):
        os.unlink(_path(spec, "beacon" if spec.job is not None else LIFE))


def _forget_killed(directory: str) -> None:
    """Remove what tells of earlier clusters of this machine that were killed: the new one is news enough."""
    with suppress(OSError):
        for entry in os.scandir(directory):
            about = files.read_json(entry.path) if entry.name.startswith(f"{LIFE}.") else None
            if about is not None and lives.is_here(about) and not lives.is_alive(about):
                os.unlink(entry.path)


def _write(spec: NodeSpec, kind: str, about: Mapping[str, Any]) -> None:
    path = _path(spec, kind)
    files.private_directory(os.path.dirname(path), os.path.dirname(spec.state_dir))
    files.write_private_json(path, about)


def _path(spec: NodeSpec, kind: str) -> str:
    if spec.job is not None:
        return os.path.join(_job_directory(spec), naming.job_file(kind, spec.key))
    name = naming.life_file(kind, spec.key) if kind == LIFE else naming.job_file(kind, "")
    return os.path.join(naming.job_directory(spec.state_dir, "", naming.LOCAL), name)


def keep_logs(spec: NodeSpec) -> str | None:
    """Keep what this node's supervisor said, and Ray's logs, the newest first and 32 MiB at most.

    Return where, None where that fails.
    """
    target = os.path.join(_job_directory(spec), "logs", f"{spec.key}r{spec.restart}", spec.node)
    room = MAX_LOG_BYTES
    try:
        files.private_directory(target, os.path.dirname(spec.state_dir))
        if SAID:
            words = "".join(f"{datetime.fromtimestamp(at).isoformat(' ', 'seconds')} {text}\n" for at, text in SAID)
            files.write_private(os.path.join(target, LOG_NAME), words)
        for log in logs.logs_in(logs.live_directories(spec.run_dir, spec.ray_dir)):
            if log.size <= room:
                copy = os.path.join(target, os.path.basename(log.path))
                shutil.copyfile(log.path, copy)
                os.utime(copy, (log.modified, log.modified))  # the order in which nodes failed stays readable
                room -= log.size
    except (DirectoryError, OSError) as exc:
        found = f"{target}: {exc.strerror}" if isinstance(exc, OSError) else exc
        say(f"the logs of node {spec.node} are not all kept: {found}")
        return None
    return target


def _job_directory(spec: NodeSpec) -> str:
    return naming.job_directory(spec.state_dir, spec.cluster, spec.job or spec.key)
