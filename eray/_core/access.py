"""How one cluster is reached: what its nodes write down, and how its token follows from a secret."""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Any, Self, get_origin

from eray._core import naming
from eray.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class Life:
    """One life of one cluster. ``key`` names it, ``job`` is its Slurm job, None on a machine of its own.

    ``node`` is its head, and ``at_head`` says that this machine is. ``token_path`` leads to the token on the cluster's
    own nodes; elsewhere it is derived, and ``fingerprint`` tells from which secret.
    """

    key: str
    job: str | None
    cluster: str
    restart: int
    node: str
    auth: str
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


@dataclass(frozen=True, kw_only=True)
class Access(Life):
    """How its Ray is reached.

    ``dashboard`` (host and port) takes Ray Jobs; None where it does not run. ``session`` is Ray's name of this life.
    ``stays`` says that it is one of `eray up`, not a program's own.
    """

    gcs_address: str
    dashboard: str | None
    session: str | None = None
    stays: bool = True


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
BY_EXPORTS = 'choose one with `eval "$(eray env --job {})"`, which sets RAY_ADDRESS, or end the others'
"""How one of several clusters is chosen: for a command that has the option, and for a program."""


def the_only_one(found: Sequence[Access], choose: str) -> Access | None:
    """Return the one cluster that was found, None where none was.

    Args:
        found: the clusters of this machine.
        choose: what the caller's user can do about several (``BY_OPTION``, ``BY_EXPORTS``), ``{}`` being one of them.

    Raises:
        UsageError: there are several; the message names them, and how one is chosen.
    """
    if len(found) > 1:
        names = sorted(access.key for access in found)
        raise UsageError(f"several clusters run on this machine: {', '.join(names)}; {choose.format(names[0])}")
    return found[0] if found else None
