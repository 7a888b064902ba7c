"""What `eray logs` knows, without asking it, of a cluster that starts or runs: from its start mark or its beacon."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any

from eray._begun import begun, known_of
from eray._core import naming
from eray._core.access import LIFE, START, Door
from eray._io import lives
from eray._job_files import names_in, told_in
from eray._show.wording import moment
from eray.errors import UsageError


@dataclass(frozen=True)
class Going:
    """One life that has not ended, as far as is known here; ``has_head`` is False of one that only has a start mark.

    ``is_here`` tells that a supervisor of it lives on this machine; ``is_over`` that it does not, whatever it left: it
    was killed.
    """

    key: str
    job: str | None
    restart: int
    purpose: str
    node: str
    began_at: float
    has_head: bool
    is_here: bool = False
    is_over: bool = False

    def after(self, key: str | None, restart: int | None, zone: tzinfo) -> str:
        """Say that it goes on, before what is known of an older life, of which key and restart are known or not."""
        again = " again" if key in (self.key, None) else ""
        life = "its life before" if again else f"{key}"
        what = f"these are the logs of {life}" if restart is None else f"this is how {life} ended (restart {restart})"
        return f"{self._verb(again, zone)} (`eray status --job {self.key}`); {what}:"

    def no_logs(self, zone: tzinfo) -> UsageError:
        """Return the error that it has no logs here, and where they are, or that there are none."""
        if self.is_over:
            more = f"`sacct -j {self.job}` and the job's output tell more"
            return UsageError(f"{self._verb('', zone)}; {more if self.job else 'see what it printed'}")
        look = f"`eray status --job {self.key}` tells how far it is"
        if self.is_here:
            return UsageError(f"{self._life} starts here since {moment(self.began_at, zone)}, without logs yet; {look}")
        # A mark is of the machine on which it was called, which may be the login node.
        where, node = (f", head {self.node}", f" -w {self.node}") if self.has_head else (f", called on {self.node}", "")
        command = f"srun --jobid={self.job} --overlap -N1{node} eray logs"
        there = f"its logs are on its nodes until it ends; `{command}` shows them, and {look}"
        killed = f"where `squeue -j {self.job}` has it no more, it was killed, and left no logs"
        return UsageError(f"{self._verb('', zone)}{where}: {there}; {killed}")

    def _verb(self, again: str, zone: tzinfo) -> str:
        if self.is_over:
            killed = f"Slurm's queue has job {self.job} no more, so Slurm ended it before its logs were kept"
            if self.job is None:
                killed = "its process is gone: it was killed before its logs were kept"
            return f"{self._life} began{again} at {moment(self.began_at, zone)}; {killed}"
        verb = "runs" if self.has_head else "starts"
        return f"{self._life} {verb}{again} since {moment(self.began_at, zone)}"

    @property
    def _life(self) -> str:
        life = f" (restart {self.restart})" if self.restart else ""
        return f"job {self.key}{life}" if self.job is not None else f"cluster {self.key}"


def going_here(doors: Iterable[Door]) -> list[Going]:
    """Return the lives of these supervisors of this machine."""
    return [Going(**_going(known_of(door)), has_head=True, is_here=True) for door in doors]


def going_elsewhere(jobs: str, job: str | None) -> list[Going]:
    """Return what the job directories tell of the job, of any where that is None."""
    found: list[Going] = []
    for directory in names_in(jobs):
        if job is not None and naming.job_of_directory(directory) != job:
            continue
        found += _lives_in(os.path.join(jobs, directory))
    return found


def killed_here(jobs: str, key: str | None) -> list[Going]:
    """Return the clusters of this machine alone that were killed, by their key where that is not None."""
    told = [about for about in told_in(os.path.join(jobs, naming.LOCAL), LIFE) if lives.is_here(about)]
    dead = [door for about in told if not lives.is_alive(about) and (door := Door.from_json(about)) is not None]
    return [Going(**_going(known_of(door)), has_head=True, is_over=True) for door in dead if key in (None, door.key)]


def latest(known: Sequence[Going], job: str | None) -> Going | None:
    """Return the one of the job, of any where that is None, which began last; one of this machine before its mark.

    One that was killed on this machine is news for whoever looks for another's logs.
    """
    fitting = [life for life in known if life.is_over or job in (None, naming.job_of_directory(life.key))]
    return max(fitting, key=lambda life: (life.is_here, life.began_at), default=None)


def _lives_in(directory: str) -> list[Going]:
    doors = [door for about in told_in(directory, "beacon") if (door := Door.from_json(about)) is not None]
    marks = begun((), told_in(directory, START), 0.0)
    return [
        *(Going(**_going(known_of(door)), has_head=True) for door in doors),
        *(Going(**_going(mark), has_head=False) for mark in marks),
    ]


def _going(life: Mapping[str, Any]) -> dict[str, Any]:
    return {name: life[name] for name in ("key", "job", "restart", "purpose", "node", "began_at")}
