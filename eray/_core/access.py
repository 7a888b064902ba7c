"""How one cluster is reached: what its nodes write down, and how its token follows from a secret."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Any, Self, TypeVar, get_origin

from eray._core import naming
from eray._core.timing import lasted
from eray.errors import ErayError, RayAttachError, UsageError

PURPOSES = {"run": "eray run", "up": "eray up", "tasks": "eray.connect()"}
"""What starts a cluster, as people call it."""
PROGRAM_LENGTH = 60
RAY_ADDRESS = "RAY_ADDRESS="
"""What messages call an address that the environment names."""
START = "start"
"""The kind of file in the job directory that tells of a start which has no head yet (``naming.job_file``)."""
LIFE = "life"
"""The kind that tells of a cluster of one machine alone, until it ends: one whose process is gone was killed."""


@dataclass(frozen=True, kw_only=True)
class Life:
    """One life of one cluster. ``key`` names it, ``job`` is its Slurm job, None on a machine of its own.

    ``purpose`` is what started it (``PURPOSES``), ``program`` what it runs and ``processes`` in how many, where eray
    starts that; ``began_at`` is the unix time. ``node`` is its head, and ``at_head`` says that this machine is.
    ``token_path`` leads to the token on the cluster's own nodes; elsewhere it is derived, and ``fingerprint`` tells
    from which secret.
    """

    key: str
    job: str | None
    cluster: str
    restart: int
    purpose: str
    node: str
    auth: str
    program: tuple[str, ...] = ()
    processes: int | None = None
    began_at: float | None = None
    fingerprint: str = ""
    token_path: str | None = None
    at_head: bool = False

    @classmethod
    def from_json(cls, about: Mapping[str, Any]) -> Self | None:
        """Read what a supervisor wrote down; None where that is not what an eray of this version wrote."""
        known: dict[str, Any] = {}
        for each in fields(cls):
            value = about.get(each.name, None if each.default is MISSING else each.default)
            kind: Any = list | tuple if get_origin(each.type) is tuple else each.type
            if not isinstance(value, kind):
                return None
            known[each.name] = tuple(value) if isinstance(value, list) else value
        return cls(**known)

    def __str__(self) -> str:
        """Name the cluster for people."""
        return f"the cluster of job {self.key}" if self.job is not None else f"the cluster {self.key}"

    @property
    def remedy(self) -> str:
        """What to do where it is gone: its job may be over, or there was none."""
        return remedy_of(self.job if self.job is not None else self.key)

    def summary(self, now: float) -> str:
        """Say which one it is among others: ``local-1a2b3c4d (`eray run -n 4 -- python train.py`, for 3 min)``."""
        age = "" if self.began_at is None else lasted(", for ", now - self.began_at)
        return f"{self.key} (`{self.command}`{age})"

    @property
    def command(self) -> str:
        """What started it, as people write it, in one line."""
        program = "".join(letter if letter.isprintable() else " " for letter in shlex.join(self.program))
        if len(program) > PROGRAM_LENGTH:
            program = f"{program[: PROGRAM_LENGTH - 1]}…"
        count = f" -n {self.processes}" if self.processes not in (None, 1) else ""
        return PURPOSES.get(self.purpose, self.purpose) + (f"{count} -- {program}" if program else "")


@dataclass(frozen=True, kw_only=True)
class Access(Life):
    """How its Ray is reached.

    ``dashboard`` (host and port) takes Ray Jobs; None where it does not run. ``session`` is Ray's name of this life.
    """

    gcs_address: str
    dashboard: str | None
    session: str | None = None

    @property
    def stays(self) -> bool:
        """Whether it is one of `eray up`, not a program's own."""
        return self.purpose == "up"


@dataclass(frozen=True, kw_only=True)
class Door(Life):
    """Where its head's beacon listens: on the first free one of ``ports`` of one of ``hosts``."""

    hosts: tuple[str, ...]
    ports: tuple[int, ...]


def derive_token(access: Life, given: str | None, kept: bytes | None) -> str | None:
    """Return the cluster's token, None where it follows from neither secret.

    Args:
        access: the cluster.
        given: ERAY_SECRET of this process.
        kept: the secret of the state directory.
    """
    secrets = [given.encode()] if given is not None else []
    if kept is not None:
        secrets.append(kept)  # of tasks, and of `srun eray up`
        # A shell may not know the name of Slurm's cluster that the step's tasks know.
        names = dict.fromkeys((access.cluster, ""))
        job = access.job or ""
        secrets += [naming.launch_secret(kept, name, job, access.restart).encode() for name in names]
    for secret in secrets:
        if naming.secret_fingerprint(secret) == access.fingerprint:
            return naming.cluster_token(secret, access.cluster, access.key, access.restart)
    return None


BY_OPTION = "choose one with `--job {}`"
BY_EXPORTS = 'choose one with `( eval "$(eray env --job {})"; python … )`, which sets RAY_ADDRESS, or end the others'
"""How one of several clusters is chosen: for a command that has the option, and for a program."""
JOB_IDS = (
    "give a Slurm job's number such as 4711 (an array's element has its own: `squeue -o %A`), or the name of a cluster "
    "of one machine alone, such as local-1a2b3c4d"
)


L = TypeVar("L", bound=Life)


def the_only_one(found: Sequence[L], choose: str, now: float) -> L | None:
    """Return the one cluster that was found, None where none was.

    Args:
        found: the clusters of this machine.
        choose: what the caller's user can do about several (``BY_OPTION``, ``BY_EXPORTS``), ``{}`` being one of them.
        now: the unix time.

    Raises:
        UsageError: there are several; the message says what each is, and how one is chosen.
    """
    if len(found) > 1:
        first = min(life.key for life in found)
        raise UsageError(f"several clusters run on this machine: {_listed(found, now)}; {choose.format(first)}")
    return found[0] if found else None


def remedy_of(name: str) -> str:
    """Return how a job, or a machine alone, gets a cluster that it has not, or no longer."""
    if naming.is_local(name):
        return "start another by `eray up`"
    job = naming.job_of_directory(name) or name
    return (
        f"`eray status --job {name}` tells how one ended; start one by `eray up` in job {job} while that runs "
        f"(`squeue -j {job}`), else in a new job"
    )


def nothing_answers(node: str, named: str, address: str) -> RayAttachError:
    """Return the error that no Ray is at an address; ``named`` is what the message calls that (``RAY_ADDRESS=``)."""
    if named != RAY_ADDRESS:
        found, remedy = f"nothing answers at {named}{address}", "see whether that cluster still runs, and is meant"
        return RayAttachError(node, found, remedy)
    return RayAttachError(
        node,
        f"{named}{address} names a cluster that is gone: nothing answers there",
        "`unset RAY_ADDRESS`, also in the shell of `sbatch`, which passes on what `eray env` set there",
    )


def no_such_cluster(name: str, here: Sequence[Life], now: float, *, node: str, where: str, remedy: str) -> ErayError:
    """Return the error that there is no cluster of the job ``name``, with those that run ``here``.

    Args:
        name: what was given, or the job around.
        here: the clusters of this machine.
        now: the unix time.
        node: this machine.
        where: the directory in which it was looked for too.
        remedy: how such a job gets a cluster.
    """
    if naming.job_of_directory(name) is None:
        return not_a_job(name, here, now)
    found = f"no cluster of job {name} on this machine or in {where}; {_running(here, now)}"
    return RayAttachError(node, found, f"{remedy}; where its nodes do not share this home, run this on one of them")


def not_a_job(name: str, here: Sequence[Life], now: float) -> UsageError:
    """Return the error that ``name`` cannot be a job's id, with the clusters that run ``here``."""
    return UsageError(f"--job {name}: is no job's id; {JOB_IDS}; {_running(here, now)}")


def _running(here: Sequence[Life], now: float) -> str:
    verb = "runs" if len(here) == 1 else "run"
    return f"on this machine {verb} {_listed(here, now)}" if here else "no cluster of yours runs on this machine"


def _listed(lives: Sequence[Life], now: float) -> str:
    return ", ".join(life.summary(now) for life in sorted(lives, key=lambda life: life.key))
