"""What is said to somebody who looks for a cluster that cannot be seen: there is none, it is silent, it was killed."""

import os
from collections.abc import Sequence

from eray._bringup import Site
from eray._core import naming
from eray._core.access import Door, Life, no_such_cluster
from eray._core.picture import Queued
from eray._io import clock, files
from eray.errors import ClusterLostError, DirectoryError, ErayError, RayAttachError


def killed(node: str, life: Door) -> ClusterLostError:
    """Say that a cluster of this machine alone has ended without a word."""
    found = f"{life} (`{life.command}`) was killed: its process is gone from this machine, and it told nobody why"
    return ClusterLostError(
        node, found, "see whether you or the kernel for its memory (`dmesg`) killed it; start it again"
    )


def silent(node: str, door: Door, *, is_over: bool) -> ClusterLostError:
    """Say that a cluster which left no last picture does not answer: it was killed, or a firewall is between.

    ``is_over`` tells that Slurm's queue does not have its job any more.
    """
    found = f"the head of {door}, {door.node}, does not answer, and how it ended was not kept"
    if is_over:
        over = f"Slurm's queue has job {door.job} no more, so Slurm ended it before the head could say how"
        return ClusterLostError(node, f"{found}; {over}", f"`sacct -j {door.job}` and its output tell more")
    runs = f"see by `squeue -j {door.job}` whether it still runs" if door.job else "see whether it still runs"
    remedy = (
        f"look at `eray logs --job {door.job or door.key}`, and {runs}; where it does, run this on one of its nodes"
    )
    return ClusterLostError(node, found, remedy)


def none(site: Site, name: str | None, here: Sequence[Life], *, queued: Queued | None, is_over: bool) -> ErayError:
    """Say that there is no cluster of the job ``name``, None for this machine's; ``here`` are those that are.

    ``queued`` tells where the job is in Slurm's queue, ``is_over`` that the queue does not have it.
    """
    if name is None:
        where = f"{site.settings.tmpdir} (ERAY_TMPDIR)"
        found = f"no cluster of yours runs on this machine, by {where}, and {_none_kept(site)}"
        return RayAttachError(site.node, found, "start one by `eray run` or `eray up`, or name a job: `--job`")
    remedy = "a job gets a cluster by its first `eray run`, `eray up` or `eray.connect()`, see `squeue`"
    if queued is not None:
        remedy = f"job {name} is {queued} in Slurm's queue: `eray status --job {name} --watch` waits for its cluster"
    elif is_over:
        job = naming.job_of_directory(name)
        remedy = f"Slurm's queue does not have job {job}: it is over, or see its number by `squeue --me`"
    return no_such_cluster(name, here, clock.unix(), node=site.node, where=site.settings.state_dir, remedy=remedy)


def _none_kept(site: Site) -> str:
    state_dir = os.path.abspath(os.path.expanduser(site.settings.state_dir))
    try:
        files.check_possible(os.path.join(state_dir, "jobs"), os.path.dirname(state_dir))
    except DirectoryError as exc:
        return f"how one ended is not kept: {exc}"
    return "none has ended on it"
