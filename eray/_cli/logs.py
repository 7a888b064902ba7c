"""``eray logs``: where the logs of a job are, and the end of the one that explains its failure."""

import argparse
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from eray._clusters import living_doors
from eray._core import naming
from eray._core.access import BY_OPTION, Door, not_a_job, the_only_one
from eray._io import clock, files, logs
from eray._io.logs import LogFile
from eray._io.patience import answers
from eray._settings import Settings
from eray._slurm.environment import read_job
from eray.errors import DirectoryError, UsageError

PATIENCE_S = 3.0
KEPT, LIVE = "kept in", "live on this node in"


@dataclass(frozen=True)
class Place:
    """A directory with the logs of one life of a cluster of a job, the newest first."""

    job: str
    kind: str
    directory: str
    logs: list[LogFile]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--job", metavar="ID", help="the job (default: this one, else the one that runs here, else the last)"
    )
    parser.add_argument("--tail", type=int, metavar="N", help="print the end of the log that explains a failure")


def run(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    """List the logs of a job, newest first; or print the end of one.

    Without a job in the arguments or around, it is the cluster that runs here, else the one with the newest log.

    Raises:
        UsageError: there is no log of it, here or in the job directory; several run here; or an argument makes no
            sense.
        DirectoryError: the home does not answer, and there is no log of it here.
    """
    if args.tail is not None and args.tail < 1:
        raise UsageError(f"--tail {args.tail}: must be 1 or more")
    settings, job = Settings.from_environ(environ), read_job(environ, in_step=False)
    state_dir = os.path.abspath(os.path.expanduser(settings.state_dir))
    homes = os.path.join(state_dir, "jobs"), naming.user_directory(settings.tmpdir, os.getuid())
    wanted, chosen = _wanted(args.job or (job.id if job else None), living_doors(settings.tmpdir))
    looks = {homes[0]: lambda: list(_kept(homes[0])), homes[1]: lambda: list(_live(homes[1]))}
    answered = answers(looks, PATIENCE_S)
    places = [place for found in answered.values() for place in found if wanted in (None, place.job)]
    if homes[0] not in answered:
        silent = DirectoryError(homes[0], f"does not answer for {PATIENCE_S:g} s", "see whether its file server is up")
        if not places:
            raise silent
        print(f"eray: {silent}", file=sys.stderr)
    if not places:
        whose = f"of job {wanted}" if wanted else "of any job"
        raise UsageError(
            f"no logs {whose} in {homes[0]} and, on this node, {homes[1]}; those of another node are kept when its "
            "cluster ends (of a cluster of one machine only when Ray or eray failed, not when a program did)"
        )
    places.sort(key=lambda place: place.logs[0].modified, reverse=True)
    if chosen is not None:
        print(f"eray: the logs of {chosen.summary(clock.unix())}; `--job` chooses another", file=sys.stderr)
    elif wanted is None:
        what = f"the newest logs are of job {places[0].job}"
        print(f"eray: no cluster of yours runs on this machine; {what}; `--job` chooses another", file=sys.stderr)
    lines = _listing(place for place in places if place.job == places[0].job)
    print("\n".join(lines if args.tail is None else _end(places[0], args.tail)))
    return 0


def _wanted(name: str | None, here: Sequence[Door]) -> tuple[str | None, Door | None]:
    """Return the job that is meant, None for the last one, and its cluster where that is the only one to live here.

    Raises:
        UsageError: several live, or the name is no job's.
    """
    if name is not None:
        job = naming.job_of_directory(name)
        if job is None:
            raise not_a_job(name, here, clock.unix())
        return job, None
    # A job's steps have their logs beside its own.
    jobs = {naming.job_of_directory(door.key): door for door in reversed(here)}
    alone = the_only_one(list(jobs.values()), BY_OPTION, clock.unix())
    return (None, None) if alone is None else (naming.job_of_directory(alone.key), alone)


def _kept(kept: str) -> Iterable[Place]:
    for name in _names(kept):
        for life in _names(os.path.join(kept, name, "logs")):
            directory = os.path.join(kept, name, "logs", life)
            yield from _place(name, KEPT, directory, logs.logs_below(directory))


def _live(live: str) -> Iterable[Place]:
    if os.path.lexists(live):
        files.check_private(live)
    for name in _names(live):
        run_dir = os.path.join(live, name)
        ray_dir = naming.ray_temp_directory(run_dir)
        yield from _place(name, LIVE, run_dir, logs.logs_in(logs.live_directories(run_dir, ray_dir)))


def _place(name: str, kind: str, directory: str, found: list[LogFile]) -> Iterable[Place]:
    job = naming.job_of_directory(name)
    if job is not None and found:
        yield Place(job, kind, directory, found)


def _listing(places: Iterable[Place]) -> Iterable[str]:
    for place in places:
        yield f"job {place.job}: logs {place.kind} {place.directory}"
        for log in place.logs:
            when = datetime.fromtimestamp(log.modified).isoformat(" ", "seconds")
            yield f"{log.size:12,}  {when}  {log.path}"


def _end(place: Place, count: int) -> Iterable[str]:
    log = logs.telling_log(place.logs) or place.logs[0]
    yield f"{log.path}:"
    yield from logs.last_lines(log.path, count)


def _names(directory: str) -> list[str]:
    try:
        return sorted(os.listdir(directory))
    except OSError:
        return []
