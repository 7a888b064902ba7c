"""Look at a cluster from anywhere: from its nodes, the batch script, the login node, while it runs or afterwards."""

import asyncio
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from eray import _unseen as unseen
from eray._begun import NAMES, begun, known_of
from eray._bringup import Site
from eray._clusters import living_doors, read_jobs, token_of
from eray._core import naming
from eray._core.access import BY_OPTION, LIFE, START, Door, the_only_one
from eray._core.handshake import Credentials
from eray._core.nodespec import LOOK
from eray._core.picture import Picture, Queued
from eray._io import beacon, clock, lives
from eray._io.channel import Channel
from eray._job_files import names_in, told_in
from eray._queue import Queue
from eray.errors import (
    BeaconError,
    ChannelClosed,
    ClusterLostError,
    DirectoryError,
    ErayError,
    RayAttachError,
    UsageError,
)

DIAL_S = 2.0
KINDS = ("beacon", "picture", START, LIFE)
ANSWER_S = 20.0


class Window:
    """An open view of one cluster; ``picture()`` draws it anew, and how it ended once it has."""

    def __init__(self, site: Site, wanted: str | None = None, dial_s: float = DIAL_S) -> None:
        """Mean the cluster of the job ``wanted``; of the job around where that is None; else the one of this machine.

        ``wanted`` may also be a step of a job (``42.0``) or a cluster of this machine (``local-1a2b3c4d``). A head that
        does not answer for ``dial_s`` seconds counts as dead.
        """
        self._site, self._wanted, self._dial_s = site, wanted, dial_s
        self._runner = asyncio.Runner()
        self._channel: Channel | None = None
        self._queue = Queue(site.environ)

    def picture(self) -> Picture:
        """Return the cluster as it is now, or how it was at its end.

        Raises:
            RayAttachError: there is none, and none that ended.
            ClusterLostError: its head does not answer, and how it ended was not kept.
            UsageError: there are several.
            SecretError: its token is not to be had here.
            DirectoryError: the home does not answer, and there is none on this machine.
        """
        try:
            picture = self._ask() if self._channel is not None else self._find()
        except ChannelClosed:
            self._channel = None
            picture = self._find()
        if picture.ending is None:
            self._queue.forget()
        elif picture.job is not None:
            queued = self._queue.of(picture.job, picture.cluster)
            if queued is not None and queued.restart > picture.restart:
                return picture.model_copy(update={"queued": queued})
        return picture

    def awaited(self, error: ErayError) -> str | None:
        """Tell whose cluster may come yet, where ``picture`` raised ``error``: of a job around or in the queue."""
        if not isinstance(error, RayAttachError | ClusterLostError):
            return None
        queued, around = self._queued(), self._site.slurm.job
        if isinstance(error, ClusterLostError):
            return f"job {self._job} is {queued}" if queued is not None and queued.state != "RUNNING" else None
        if queued is not None:
            return f"job {self._job} has no cluster yet and is {queued}"
        if around is not None and self._wanted in (None, around.id):
            return f"job {around.id} has no cluster yet"
        return None

    @property
    def _job(self) -> str | None:
        """The Slurm job that ``--job`` means."""
        job = None if self._wanted is None else naming.job_of_directory(self._wanted)
        return None if job is None or naming.is_local(job) else job

    def _queued(self) -> Queued | None:
        return None if self._job is None else self._queue.of(self._job)

    def close(self) -> None:
        """Hang up."""
        if self._channel is not None:
            self._runner.run(self._channel.close())
        self._runner.close()

    def _find(self) -> Picture:
        job = self._site.slurm.job
        name = self._wanted or (job.id if job is not None else None)
        here = living_doors(self._site.settings.tmpdir)
        found: dict[str, list[Mapping[str, Any]]] = {}
        unread: DirectoryError | None = None
        try:
            found = self._kept(name)
        except DirectoryError as exc:
            unread = exc
        here = _with(here, _doors(told for told in _here(found) if lives.is_alive(told)))  # by another ERAY_TMPDIR
        own = [door for door in here if _fits(door.key, name)]
        if name is None:
            the_only_one(own, BY_OPTION, clock.unix())
        doors = _with(own, _doors(found.get("beacon", ())))
        problem: ErayError | None = None
        silent = []
        for door in sorted(doors, key=lambda door: (door.key != name, -door.restart)):
            try:
                self._channel = self._runner.run(self._dial(door))
                return self._ask()
            except BeaconError:
                silent.append(door)
            except (ErayError, ChannelClosed) as exc:
                problem = problem or exc
        if unread is None and (doors or found[LIFE]):
            found = self._kept(name)  # it may have ended meanwhile
        killed = _doors(told for told in _here(found) if not lives.is_alive(told))
        starts = begun(
            (door for door in silent if door in own), found.get(START, ()), self._site.settings.cluster_timeout_s
        )
        began_at = max((life["began_at"] for life in (*starts, *map(known_of, (*doors, *killed)))), default=0.0)
        kept = [about for about in found.get("picture", ()) if about["taken_at"] >= began_at]  # not an earlier one
        if kept:
            return _read(max(kept, key=lambda about: (about.get("key") == name, about["taken_at"])))
        if starts:
            return _starting(max(starts, key=lambda life: float(life["began_at"])))
        address = self._site.environ.get("RAY_ADDRESS")
        if problem is None and not silent and self._wanted is None and address:
            from eray._ray import foreign

            return foreign.look(self._site.node, address)
        raise problem or (None if silent else unread) or self._unseen(name, here, silent, killed)

    def _unseen(
        self, name: str | None, here: Sequence[Door], silent: Sequence[Door], killed: Sequence[Door]
    ) -> ErayError:
        if silent:
            job = silent[0].job
            return unseen.silent(self._site.node, silent[0], is_over=job is not None and self._queue.lacks(job))
        if killed:
            return unseen.killed(self._site.node, max(killed, key=lambda door: door.began_at or 0.0))
        queued = self._queued()
        is_over = queued is None and self._job is not None and self._queue.lacks(self._job)
        return unseen.none(self._site, name, here, queued=queued, is_over=is_over)

    def _kept(self, name: str | None) -> dict[str, list[Mapping[str, Any]]]:
        """Return by its kind what the home has of a job, or of this machine's last cluster."""
        found: dict[str, list[Mapping[str, Any]]] = {kind: [] for kind in KINDS}
        for kind, about in read_jobs(self._site, lambda jobs: list(_files_of(jobs, name)))[1]:
            found[kind].append(about)
        return found

    async def _dial(self, door: Door) -> Channel:
        token = token_of(self._site, door)
        if token is None:
            token = naming.cluster_token(b"", door.cluster, door.key, door.restart)
        hosts = door.hosts if door.job is not None else (naming.LOOPBACK,)
        return await beacon.dial(
            hosts,
            door.ports,
            Credentials(token, door.fingerprint, door.key),
            node=self._site.node,
            deadline_s=self._dial_s,
            progress=lambda text: None,
        )

    def _ask(self) -> Picture:
        return self._runner.run(_asked(self._channel))


async def _asked(channel: Channel | None) -> Picture:
    assert channel is not None
    try:
        async with asyncio.timeout(ANSWER_S):
            await channel.send({"type": LOOK})
            return _read((await channel.receive_large())["picture"])
    except TimeoutError:
        raise BeaconError(
            channel.peer, f"the head does not answer within {ANSWER_S:g} s", "see whether its node is overloaded"
        ) from None


def _starting(life: Mapping[str, Any]) -> Picture:
    """Draw a cluster whose head does not answer yet."""
    about = {name: life[name] for name in (*NAMES, "began_at") if name != "node"}
    return _read(about | {"head": life["node"], "phase": "starting", "taken_at": clock.unix()})


def _read(about: Mapping[str, Any]) -> Picture:
    try:
        return Picture.model_validate(about)
    except ValidationError as exc:
        raise UsageError(f"this picture of a cluster is not one that eray reads: {exc}") from None


def _doors(told: Iterable[Mapping[str, Any]]) -> list[Door]:
    return [door for about in told if (door := Door.from_json(about)) is not None]


def _with(known: Sequence[Door], others: Iterable[Door]) -> list[Door]:
    keys = {door.key for door in known}
    return [*known, *(door for door in others if door.key not in keys)]


def _here(found: Mapping[str, Sequence[Mapping[str, Any]]]) -> Iterator[Mapping[str, Any]]:
    """Yield what was told of the clusters of this machine alone."""
    return filter(lives.is_here, found.get(LIFE, ()))


def _fits(key: str, name: str | None) -> bool:
    if name is None:
        return naming.is_local(key)
    return key == name or key.partition(".")[0] == name


def _files_of(jobs: str, name: str | None) -> Iterator[tuple[str, Mapping[str, Any]]]:
    job = None if name is None else name.partition(".")[0]
    for directory in names_in(jobs):
        is_local = directory == naming.LOCAL
        if not (is_local if job is None else job in (directory, naming.job_of_directory(directory)) or is_local):
            continue
        for kind in KINDS:
            for about in told_in(os.path.join(jobs, directory), kind):
                if _fits(str(about.get("key")), name):
                    yield kind, about
