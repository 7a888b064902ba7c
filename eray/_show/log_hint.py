"""Say where the cause of a failure can be read: by ``eray logs`` where it has something to show, else elsewhere."""

from eray._core.access import PURPOSES
from eray._core.outcome import keeps_logs
from eray._core.picture import Picture


def log_hint(picture: Picture) -> str:
    """Return what to look at.

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
