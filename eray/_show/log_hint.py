"""Say where the cause of a failure can be read: by ``eray logs`` where it has something to show, else elsewhere."""

import re

from eray._core.access import PURPOSES
from eray._core.outcome import keeps_logs
from eray._core.picture import Picture
from eray.errors import ClusterError

OUTPUT_FILE = "the job's output file (`#SBATCH --output`, else slurm-<job>.out)"
OUTPUT = f"look at what the program printed, in {OUTPUT_FILE}"
RAISED = re.compile(r"\b\w+(Error|Exception): ")
"""From here on a cause has the program's own words."""


def failure_hint(picture: Picture) -> str:
    """Return what to look at after a failure, nothing where its cause says already what to do.

    What a program of a Slurm job failed by stands in what it printed; eray's logs tell of Ray, nodes and eray.
    """
    ending = picture.ending
    if ending is None:
        return world_hint(picture)
    if ending.code == ClusterError.exit_code:
        return log_hint(picture)
    first, *_ = (ending.cause or "").splitlines() or [""]
    if "; " in RAISED.split(first)[0]:
        return ""
    is_programs = picture.job is not None and picture.purpose in ("run", "tasks") and not first.startswith("node ")
    return OUTPUT if is_programs else log_hint(picture)


def world_hint(picture: Picture) -> str:
    """Return what to look at where a world failed and the cluster goes on: drivers on `eray up` hear all."""
    if picture.purpose != "up":
        return log_hint(picture)
    jobs = f"`eray jobs list --job {picture.job or picture.key}`"
    return (
        f"read what the world's driver printed, for it hears all of the failure; {jobs} shows the Ray Jobs among them"
    )


def log_hint(picture: Picture) -> str:
    """Return how the logs are read.

    The logs of a cluster that lives are on its nodes; of one that ended there are those that were kept, if any.
    """
    if picture.purpose == "foreign":
        return "look at the logs of Ray: eray did not start this cluster"
    command, shows = (
        f"`eray logs --job {picture.job or picture.key} --tail 50`",
        "shows the end of the log that explains it",
    )
    if picture.phase != "ended":
        return f"{command}{'' if picture.job is None else ', on the node that failed,'} {shows}"
    if keeps_logs(picture.job, 0 if picture.ending is None else picture.ending.code):
        return f"{command} {shows}"
    who = f"`{PURPOSES[picture.purpose]}`" if picture.purpose in ("run", "up") else "the program"
    return f"look at what {who} printed; of a cluster of one machine logs are kept only where Ray or eray failed"
