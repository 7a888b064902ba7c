"""``eray logs``: how a job ended and why, and where its logs are: eray's and the program's, then Ray's."""

import argparse
import fnmatch
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from eray._clusters import living_doors
from eray._core import naming
from eray._core.access import BY_OPTION, Door, not_a_job, the_only_one
from eray._core.counted import counted
from eray._core.nodespec import LOG_NAME, START_LOG
from eray._io import clock, files, logs
from eray._io.logs import LogFile
from eray._io.patience import answers
from eray._settings import Settings
from eray._slurm.environment import read_job
from eray.errors import ClusterError, DirectoryError, UsageError

if TYPE_CHECKING:
    from eray._core.picture import Picture

PATIENCE_S = 3.0
KEPT, LIVE = "kept in", "live on this node in"
FIRST_LINES = 20
"""How many lines of a cause stand before the list."""
MOST_JOBS = 5
ONLY_FAILED = "of a cluster of one machine only when Ray or eray failed, not when a program did"


@dataclass(frozen=True)
class Place:
    """The logs of one life of a cluster, the newest first; ``about`` tells how it ended, where that is kept."""

    job: str
    kind: str
    directory: str
    logs: list[LogFile]
    about: Mapping[str, Any] | None = None

    @property
    def at(self) -> float:
        """The unix time of the last that is known of it."""
        ended = (self.about or {}).get("taken_at", 0.0)
        return max([log.modified for log in self.logs[:1]] + [ended if isinstance(ended, float) else 0.0])

    @cached_property
    def picture(self) -> "Picture | None":
        """How it was at its end, None where that is not known."""
        if self.about is None:
            return None
        from pydantic import ValidationError

        from eray._core.picture import Picture

        try:
            return Picture.model_validate(self.about)
        except ValidationError:
            return None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--job", metavar="ID", help="the job (default: this one, else the one that runs here, else the last)"
    )
    parser.add_argument(
        "--tail", type=int, metavar="N", help="print why it failed, and the end of the log that explains it"
    )
    parser.add_argument("--all", action="store_true", help="list Ray's own logs too")


def run(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    """Say how a job ended and list its logs, newest first; or print the end of the one that explains it.

    Without a job in the arguments or around, it is the cluster that runs here, else the last one.

    Raises:
        UsageError: nothing is known of it, here or in the job directory; several run here; or an argument makes no
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
    known = sorted((place for found in answered.values() for place in found), key=lambda place: -place.at)
    places = [place for place in known if wanted in (None, place.job)]
    if homes[0] not in answered:
        silent = DirectoryError(homes[0], f"does not answer for {PATIENCE_S:g} s", "see whether its file server is up")
        if not places:
            raise silent
        print(f"eray: {silent}", file=sys.stderr)
    if not places:
        raise _none(wanted, known, homes)
    if chosen is not None:
        print(f"eray: the logs of {chosen.summary(clock.unix())}; `--job` chooses another", file=sys.stderr)
    elif wanted is None:
        what = f"the last was job {places[0].job}"
        print(f"eray: no cluster of yours runs on this machine; {what}; `--job` chooses another", file=sys.stderr)
    lines = _listing([place for place in places if place.job == places[0].job], all_of_them=args.all)
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


def _none(wanted: str | None, known: Sequence[Place], homes: Sequence[str]) -> UsageError:
    whose = f"of job {wanted}" if wanted else "of any job"
    jobs = list(dict.fromkeys(place.job for place in known))[:MOST_JOBS]
    others = f"; the last jobs known there are {', '.join(jobs)}" if jobs else ""
    return UsageError(
        f"no logs {whose} in {homes[0]} and, on this node, {homes[1]}; those of another node are kept when its "
        f"cluster ends ({ONLY_FAILED}){others}"
    )


def _kept(kept: str) -> Iterable[Place]:
    """Yield each life that left logs, or how it ended."""
    lives: dict[str, tuple[str, dict[str, Any] | None]] = {}
    for name in _names(kept):
        for life in _names(os.path.join(kept, name, "logs")):
            lives.setdefault(os.path.join(kept, name, "logs", life), (name, None))
        for file in fnmatch.filter(_names(os.path.join(kept, name)), "picture*.json"):
            about = files.read_json(os.path.join(kept, name, file))
            if about is not None:
                key = str(about.get("key"))
                home = key if name == naming.LOCAL else name
                lives[os.path.join(kept, home, "logs", f"{key}r{about.get('restart')}")] = home, about
    for directory, (name, about) in lives.items():
        yield from _place(name, KEPT, directory, logs.logs_below(directory), about)


def _live(live: str) -> Iterable[Place]:
    if os.path.lexists(live):
        files.check_private(live)
    for name in _names(live):
        run_dir = os.path.join(live, name)
        ray_dir = naming.ray_temp_directory(run_dir)
        yield from _place(name, LIVE, run_dir, logs.logs_in(logs.live_directories(run_dir, ray_dir)))


def _place(
    name: str, kind: str, directory: str, found: list[LogFile], about: Mapping[str, Any] | None = None
) -> Iterable[Place]:
    job = naming.job_of_directory(name)
    if job is not None and (found or about):
        yield Place(job, kind, directory, found, about)


def _listing(places: Sequence[Place], *, all_of_them: bool) -> Iterable[str]:
    for place in places:
        yield from _story(place, FIRST_LINES)
        if not place.logs:
            continue
        yield f"job {place.job}: logs {place.kind} {place.directory}"
        own = [log for log in place.logs if logs.is_own(log)]
        others = [log for log in place.logs if log not in own]
        for log in [*own, *others] if all_of_them else own:
            when = datetime.fromtimestamp(log.modified).isoformat(" ", "seconds")
            yield f"{log.size:12,}  {when}  {log.path}"
        if others and not all_of_them:
            total = sum(log.size for log in others)
            yield f"job {place.job}: {counted(len(others), 'file')} of Ray's there, {total:,} bytes; `--all` lists them"


def _story(place: Place, count: int) -> list[str]:
    lines = []
    if place.picture is not None:
        from eray._show.story import story_lines

        lines = story_lines(place.picture, count, clock.zone())
    if not place.logs:
        lines.append(f"job {place.job}: no logs are kept{f' ({ONLY_FAILED})' if naming.is_local(place.job) else ''}")
    return lines


def _end(place: Place, count: int) -> Iterable[str]:
    """Yield why it ended, then the end of the log that explains that, unless its head has told all of it."""
    told = _story(place, count)
    yield from told
    for log in _telling(place):
        if lines := logs.last_lines(log.path, count):
            if any(line.strip() not in "\n".join(told) for line in lines):
                yield from [f"{log.path}:", *lines]
            return


def _telling(place: Place) -> list[LogFile]:
    """Return the logs that explain an end, the most telling first; of one that runs still, those to read first."""
    own = [log for log in place.logs if logs.is_own(log)]
    supervisors = [log for log in own if os.path.basename(log.path) == LOG_NAME]
    daemons = [log for name in (*logs.LAST_WORDS, START_LOG) if (log := logs.telling_log(place.logs, [name]))]
    picture = place.picture
    if picture is None or picture.ending is None:
        return [*supervisors[-1:], *daemons, *(own or place.logs)]
    if picture.ending.has_failed and picture.ending.code == ClusterError.exit_code:
        beside = [log for log in supervisors if os.path.basename(os.path.dirname(log.path)) != picture.head]
        return [*daemons, *beside[::-1]]
    # What processes of `eray run` and of a step print does not go through Ray.
    return [log for log in own if log not in supervisors] if picture.purpose == "up" else []


def _names(directory: str) -> list[str]:
    try:
        return sorted(os.listdir(directory))
    except OSError:
        return []
