"""What Slurm's queue says of one job: the call of squeue, and how its answer is read."""

from collections.abc import Mapping

from eray._core.command import Command
from eray._core.picture import Queued

FIELDS = ("Cluster", "JobID", "RestartCnt", "State", "Reason")
WIDTH = 128
"""Characters a field: squeue pads and cuts them, so that a reason may have any letter."""
OWN_DEFAULTS = "SQUEUE_"


def queue_command(job: str, environ: Mapping[str, str]) -> Command:
    """Return the squeue command that tells of ``job``; the user's own defaults for squeue do not count."""
    env = {name: value for name, value in environ.items() if not name.startswith(OWN_DEFAULTS)}
    fields = ",".join(f"{name}:{WIDTH}" for name in FIELDS)
    return Command(("squeue", "--noheader", "--jobs", job, "--Format", fields), env)


def read_queue(text: str, job: str, cluster: str = "") -> Queued | None:
    """Return what squeue's answer says of ``job``, None where it is not in the queue.

    ``cluster`` is the Slurm cluster whose job is meant, where that is known: jobs of others have the same numbers.
    """
    for line in text.splitlines():
        cells = [line[start : start + WIDTH].strip() for start in range(0, WIDTH * len(FIELDS), WIDTH)]
        found, number, restart, state, reason = cells
        if number == job and restart.isdigit() and cluster in ("", found):
            return Queued(state=state, reason=reason, restart=int(restart))
    return None
