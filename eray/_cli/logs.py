"""``eray logs``: how a job ended and why, and where its logs are: eray's and the program's, then Ray's."""

import argparse
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from eray._cli.counts import whole_number
from eray._cli.going import Going, going_elsewhere, going_here, killed_here, latest
from eray._cli.places import LIVE, Place, kept_places, live_places
from eray._clusters import living_doors
from eray._core import naming
from eray._core.access import BY_OPTION, Door, not_a_job, the_only_one
from eray._core.counted import counted
from eray._core.nodespec import LOG_NAME, START_LOG
from eray._io import clock, logs
from eray._io.logs import LogFile
from eray._io.patience import answers
from eray._settings import Settings
from eray._slurm.environment import read_job
from eray.errors import ClusterError, DirectoryError, UsageError

PATIENCE_S = 3.0
FIRST_LINES = 20
"""How many lines of a cause stand before the list."""
MOST_JOBS = 5
ONLY_FAILED = "of a cluster of one machine only when Ray or eray failed, not when a program did"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--job", metavar="ID", help="the job (default: this one, else the one that runs here, else the last)"
    )
    parser.add_argument(
        "--tail", type=whole_number, metavar="N", help="print why it failed, and the end of the log that explains it"
    )
    parser.add_argument("--all", action="store_true", help="list Ray's own logs too")


def run(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    """Say how a job ended and list its logs, newest first; or print the end of the one that explains it.

    Without a job in the arguments or around, it is the cluster that runs here, else the last one.

    Raises:
        UsageError: nothing is known of it, here or in the job directory; several run here; or an argument makes no
            sense; or it goes on, and has no logs here yet.
        DirectoryError: the home does not answer, and there is no log of it here.
    """
    settings, job = Settings.from_environ(environ), read_job(environ, in_step=False)
    state_dir = os.path.abspath(os.path.expanduser(settings.state_dir))
    homes = os.path.join(state_dir, "jobs"), naming.user_directory(settings.tmpdir, os.getuid())
    doors = living_doors(settings.tmpdir)
    wanted, chosen = _wanted(args.job or (job.id if job else None), doors)
    looks = {homes[0]: lambda: list(kept_places(homes[0])), homes[1]: lambda: list(live_places(homes[1]))}
    answered = answers(looks, PATIENCE_S)
    known = sorted((place for found in answered.values() for place in found), key=lambda place: -place.at)
    places = [place for place in known if wanted in (None, place.job)]
    whose = wanted or (places[0].job if places else None)
    look = {homes[0]: lambda: going_elsewhere(homes[0], whose) + killed_here(homes[0], wanted)}
    elsewhere = answers(look if homes[0] in answered else {}, PATIENCE_S).get(homes[0], [])
    goes_on = latest(going_here(doors) + elsewhere, whose)
    goes_on = _checked(goes_on, environ)
    if homes[0] not in answered:
        silent = DirectoryError(homes[0], f"does not answer for {PATIENCE_S:g} s", "see whether its file server is up")
        if not places and goes_on is None:
            raise silent
        print(f"eray: {silent}", file=sys.stderr)
    if not places:
        raise goes_on.no_logs(clock.zone()) if goes_on else _none(wanted, known, homes)
    if chosen is not None:
        print(f"eray: the logs of {chosen.summary(clock.unix())}; `--job` chooses another", file=sys.stderr)
    elif wanted is None:
        what = f"the last was job {places[0].job}"
        print(f"eray: no cluster of yours runs on this machine; {what}; `--job` chooses another", file=sys.stderr)
    shown = [place for place in places if place.job == places[0].job]
    lines = _listing(shown, all_of_them=args.all) if args.tail is None else _end(shown[0], args.tail, goes_on)
    print("\n".join([*_again(shown[0], goes_on), *lines]))
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


def _checked(life: Going | None, environ: Mapping[str, str]) -> Going | None:
    """Return the life that goes on by what it left, together with whether Slurm's queue still has its job."""
    if life is None or life.job is None or life.is_here:
        return life
    from eray._queue import Queue  # loads pydantic, which a list of logs does not need

    return replace(life, is_over=Queue(environ).lacks(life.job))


def _none(wanted: str | None, known: Sequence[Place], homes: Sequence[str]) -> UsageError:
    whose = f"of job {wanted}" if wanted else "of any job"
    jobs = list(dict.fromkeys(place.job for place in known))[:MOST_JOBS]
    others = f"; the last jobs known there are {', '.join(jobs)}" if jobs else ""
    alone = f" ({ONLY_FAILED})" if wanted is None or naming.is_local(wanted) else ""
    return UsageError(
        f"no logs {whose} in {homes[0]} and, on this node, {homes[1]}; those of another node are kept when its "
        f"cluster ends{alone}{others}"
    )


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


def _again(place: Place, goes_on: Going | None) -> Iterable[str]:
    """Yield that a later life goes on than the one that is shown."""
    if goes_on is not None and goes_on.began_at > place.at:
        picture = place.picture if place.picture is not None and place.picture.ending is not None else None
        key, restart = (None, None) if picture is None else (picture.key, picture.restart)
        yield goes_on.after(key, restart, clock.zone())


def _end(place: Place, count: int, goes_on: Going | None) -> Iterable[str]:
    """Yield why it ended, then the end of the log that explains that, unless its head has told all of it.

    At last where the program's output is, if no log was shown and the head has not said it.
    """
    told = _story(place, count)
    yield from told
    for log in _telling(place):
        if lines := logs.last_lines(log.path, count):
            if any(line.strip() not in "\n".join(told) for line in lines):
                yield from [f"{log.path}:", *lines]
                return
            break
    else:
        if place.picture is None:
            yet = " yet" if place.kind == LIVE else ""
            nothing = f"job {place.job}: nothing that eray or a program said is in a log{yet}"
            yield "; ".join([nothing, *_output(place, goes_on)])
            return
    yield from (line for line in _output(place, goes_on) if line not in told)


def _output(place: Place, goes_on: Going | None) -> Iterable[str]:
    """Yield where the program's output is, as far as that is known."""
    from eray._show.story import output_line

    life = place.picture or (goes_on if place.kind == LIVE else None)
    if life is not None and life.purpose == "up":
        printed = [log.path for log in place.logs if logs.is_of_ray_job(log)]
        yield from (f"what the last Ray Job printed is in {path}" for path in printed[:1])
    else:
        yield output_line(place.job, None if life is None else life.purpose)


def _telling(place: Place) -> list[LogFile]:
    """Return the logs that explain an end, the most telling first; of one that runs still, those to read first."""
    own = sorted((log for log in place.logs if logs.is_own(log)), key=lambda log: not logs.is_of_ray_job(log))
    supervisors = [log for log in own if os.path.basename(log.path) == LOG_NAME]
    daemons = [log for name in (*logs.LAST_WORDS, START_LOG) if (log := logs.telling_log(place.logs, [name]))]
    picture = place.picture
    if picture is None or picture.ending is None:
        return [*supervisors[-1:], *daemons, *own]
    if picture.ending.has_failed and picture.ending.code == ClusterError.exit_code:
        beside = [log for log in supervisors if os.path.basename(os.path.dirname(log.path)) != picture.head]
        return [*daemons, *beside[::-1]]
    # What processes of `eray run` and of a step print does not go through Ray.
    return [log for log in own if log not in supervisors] if picture.purpose == "up" else []
