"""Wait for a cluster that is just starting, instead of saying that there is none."""

import os
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TypeVar

from eray._bringup import Site
from eray._clusters import find, living, living_doors, require_alive
from eray._core import naming
from eray._core.access import BY_OPTION, Access, Door, the_only_one
from eray._core.timing import Backoff, Deadline, lasted
from eray._io import clock
from eray._ray.notices import say
from eray.errors import ClusterLostError, ErayError, RayAttachError

T = TypeVar("T")

PAUSES = Backoff(first_s=0.1, limit_s=1.0)
AGAIN_S = 1.0
"""When it is looked again where nothing is there: an `eray up` that was called a moment ago has left no trace yet."""
LATE = 3
"""How often a head may say that its cluster is up before its file, with which others reach it, is seen."""


@dataclass(frozen=True)
class Start:
    """A cluster that is on its way up: its key, since when in unix time where that is known, and whether it is up."""

    key: str
    began_at: float | None
    is_up: bool = False

    @property
    def words(self) -> str:
        """Say it to people."""
        name = f"the cluster {self.key}" if naming.is_local(self.key) else f"the cluster of job {self.key}"
        age = "" if self.began_at is None else lasted(", for ", clock.unix() - self.began_at, " so far")
        return f"{name} is starting{age}"

    @property
    def hint(self) -> str:
        """Say where people see for what it waits."""
        return f"`eray status --job {self.key}` shows whom it awaits"


def find_started(site: Site, wanted: str | None, address_of: Callable[[Access], str]) -> Access:
    """Return the cluster that ``wanted`` means (``_clusters.find``), when it is up and answers at an address of its.

    ``address_of`` raises RayAttachError where it has no such address.

    Raises:
        RayAttachError, ClusterLostError: there is none, also none that is starting; or it is not up in time.
        UsageError: there are several.
    """

    def look() -> Access:
        access = find(site, wanted)
        require_alive(access, address_of(access))
        return access

    return when_started(site, look, lambda: _start_of(site, wanted))


def when_started(site: Site, look: Callable[[], T], start_of: Callable[[], Start | None]) -> T:
    """Return what ``look`` finds; where it raises, and a cluster is starting, wait for that: ERAY_CLUSTER_TIMEOUT_S.

    That nothing is there, nor starting, is believed at the second look only.

    Raises:
        RayAttachError, ClusterLostError: what ``look`` raised, where none is starting; or it is not up in time.
    """
    timeout_s = site.settings.cluster_timeout_s
    deadline, attempt, seen_up = Deadline.after(timeout_s, now=clock.monotonic()), 0, 0
    is_first = True
    while True:
        try:
            return look()
        except (RayAttachError, ClusterLostError):
            start = start_of()
            seen_up += start is not None and start.is_up
            if start is None and is_first:
                is_first = False
                clock.sleep(AGAIN_S)
                continue
            if start is None or seen_up > LATE:
                return look()  # it may have come up since the look before
        if deadline.is_over(clock.monotonic()):
            found = f"{start.words}; it was waited for {timeout_s:g} s"
            raise RayAttachError(site.node, found, f"{start.hint}; or raise ERAY_CLUSTER_TIMEOUT_S")
        if not attempt and not start.is_up:
            say(f"{start.words}; waiting for it, {timeout_s:g} s at most ({start.hint})")
        clock.sleep(PAUSES.pause_s(attempt, deadline, clock.monotonic()))
        attempt += 1


def start_here(site: Site, keys: Sequence[str] | None = None) -> Start | None:
    """Return the cluster that starts on this machine: of the job's ``keys``; None: the `eray up` without a job.

    Raises:
        UsageError: several are starting.
    """
    up = {(access.key, access.restart) for access in living(site)}
    job = site.slurm.job
    doors = [
        door
        for door in living_doors(site.settings.tmpdir)
        if (door.key, door.restart) not in up and _is_meant(door, keys, None if job is None else job.restart)
    ]
    door = doors[0] if keys is not None and doors else the_only_one(doors, BY_OPTION, clock.unix())
    return None if door is None else Start(door.key, door.began_at)


def _is_meant(door: Door, keys: Sequence[str] | None, restart: int | None) -> bool:
    if keys is None:
        return door.job is None and door.purpose == "up"
    return door.key in keys and restart in (None, door.restart)


def _start_of(site: Site, wanted: str | None) -> Start | None:
    """Ask the head of the cluster that is meant, wherever it is, how far it is."""
    from eray._look import Window  # loads pydantic, which `eray env` needs only here

    job = site.slurm.job
    if wanted is None and job is None:
        return start_here(site)
    name = job.id if wanted is None and job is not None else str(wanted)
    key = name if naming.is_local(name) else naming.job_of_directory(name)
    try:
        with closing(Window(site, key)) as window:
            picture = window.picture()
    except ErayError:
        return None
    restart = job.restart if job is not None and key == job.id else picture.restart
    if picture.phase == "ended" or (picture.key, picture.restart) != (key, restart):
        return None
    if name not in (key, os.path.basename(naming.job_directory("", picture.cluster, picture.key))):
        return None
    return Start(picture.key, picture.began_at, is_up=picture.phase == "up")
