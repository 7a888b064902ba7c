"""The cluster that has this node already: a job has one, and a second one is told what the first is."""

import os

from eray._core.access import Life
from eray._core.nodespec import BEACON_FILE, NodeSpec
from eray._core.timing import lasted
from eray._io import clock, files
from eray.errors import NodeLockedError

REMEDIES = {
    "run": "wait until it ends (`eray status` shows it), or start this in a job of its own",
    "up": "use that one, by `eray submit -- …` or `srun python …`, or stop it first",
}


def refused(spec: NodeSpec, error: NodeLockedError) -> int:
    """Return the exit code of a node that another cluster of its job has; the node of the head says which, alone.

    Raises:
        NodeLockedError: this node has to say it.
    """
    about = files.read_json(os.path.join(spec.run_dir, BEACON_FILE))
    tenant = None if about is None else Life.from_json(about)
    if tenant is None or tenant.purpose not in REMEDIES:
        raise error
    if spec.node_rank and tenant.node == spec.nodes[0]:
        return error.exit_code
    age = "" if tenant.began_at is None else lasted(" for ", clock.unix() - tenant.began_at)
    found = f"job {spec.job} has a cluster already: `{tenant.command}` runs{age}, from {tenant.node} ({error.holder})"
    raise NodeLockedError(error.path, error.holder, f"{found}; {REMEDIES[tenant.purpose]}") from error
