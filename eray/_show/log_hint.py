"""Say where the cause of a failure can be read: by ``eray logs`` where it has something to show, else elsewhere."""

from eray._core.outcome import keeps_logs
from eray._core.picture import Picture

PRINTED_BY = {"run": "`eray run`", "up": "`eray up`"}


def log_hint(picture: Picture) -> str:
    """Return what to look at.

    The logs of a cluster that lives are on its nodes; of one that ended there are those that were kept, if any.
    """
    if picture.purpose == "foreign":
        return "look at the logs of Ray: eray did not start this cluster"
    command = f"`eray logs --job {picture.job or picture.key} --tail 50`"
    if picture.phase != "ended":
        where = "" if picture.job is None else ", on the node that failed,"
        return f"{command}{where} shows the end of the log that explains it"
    if keeps_logs(picture.job, 0 if picture.ending is None else picture.ending.code):
        return f"{command} shows the end of the log that explains it"
    who = PRINTED_BY.get(picture.purpose, "the program")
    return f"look at what {who} printed; of a cluster of one machine logs are kept only where Ray or eray failed"
