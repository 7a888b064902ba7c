"""Find the logs of a cluster on this node or in a job directory, and read their ends."""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from eray._core.nodespec import LOG_NAME

ENDINGS = (".log", ".err", ".out")
LAST_WORDS = ("raylet.err", "gcs_server.err", "ray_process_exit.log")
"""What a daemon said when it ended, the most telling first; at last how `ray start` saw it end. Empty until then."""
TAIL_BYTES, LINE_CHARACTERS = 65_536, 500
MARKS = (":job_id:", ":actor_name:", ":task_name:")
"""How lines begin that Ray writes into the output of its workers, for its log monitor."""
_MARKS_BYTES = 512
_GREETING = re.compile(r"\S+ \S+\t(INFO|SUCC) (scripts|cli_output_helpers|usage_lib)\.py:\d+ -- ")
"""What `ray start` prints where all is well, with commands that would end or join other clusters."""
_JOB_DRIVER = "job-driver-"
_WORKER = re.compile(rf"(worker-.*\.(out|err)|{_JOB_DRIVER}.*\.log)$")


@dataclass(frozen=True)
class LogFile:
    """One log that is not empty; ``modified`` in seconds since 1970."""

    path: str
    size: int
    modified: float


def live_directories(run_dir: str, ray_dir: str) -> tuple[str, str]:
    """Return where a node that runs writes its logs: Ray's daemons and workers, then eray."""
    return os.path.join(ray_dir, "session_latest", "logs"), run_dir


def logs_in(directories: Iterable[str]) -> list[LogFile]:
    """Return the logs in these directories, not below them, newest first; what vanishes meanwhile is left out."""
    found = [log for directory in directories for log in _logs_in(directory)]
    return sorted(found, key=lambda log: log.modified, reverse=True)


def logs_below(directory: str) -> list[LogFile]:
    """Return the logs in a directory and all below it, newest first."""
    return logs_in(level for level, _, _ in os.walk(directory))


def telling_log(logs: Sequence[LogFile], names: Sequence[str]) -> LogFile | None:
    """Return the first of ``names`` that is there: the log that explains best why Ray ended, or did not start.

    Of those of several nodes it is the one with the oldest last words.
    """
    for name in names:
        named = [log for log in logs if os.path.basename(log.path) == name]
        if named:
            return min(named, key=lambda log: log.modified)
    return None


def last_lines(path: str, count: int) -> list[str]:
    """Return the last lines of a file, each cut to 500 characters; none where it cannot be read.

    Ray's greeting is left out.
    """
    try:
        with open(path, "rb") as stream:
            stream.seek(max(os.fstat(stream.fileno()).st_size - TAIL_BYTES, 0))
            lines = stream.read().decode(errors="replace").splitlines()
    except OSError:
        return []
    told = [line for line in lines if not _GREETING.match(line)]
    return [line[:LINE_CHARACTERS] for line in told[-count:]]


def is_own(log: LogFile) -> bool:
    """Tell whether a log is eray's or a program's: of the supervisor, a Ray Job, an actor, the coordinator."""
    name = os.path.basename(log.path)
    if not _WORKER.match(name):
        return name == LOG_NAME
    if log.size > _MARKS_BYTES:
        return True
    return any(line and not line.startswith(MARKS) for line in last_lines(log.path, len(MARKS) + 1))


def is_of_ray_job(log: LogFile) -> bool:
    """Tell whether it is what a Ray Job's program printed."""
    return os.path.basename(log.path).startswith(_JOB_DRIVER)


def _logs_in(directory: str) -> Iterator[LogFile]:
    with suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            if entry.name.endswith(ENDINGS) and entry.is_file(follow_symlinks=False):
                with suppress(OSError):
                    about = entry.stat(follow_symlinks=False)
                    if about.st_size:
                        yield LogFile(entry.path, about.st_size, about.st_mtime)
