"""A second cluster in one job is told what the first is, by one node."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from test_nodespec import SPEC

from eray._core.nodespec import BEACON_FILE
from eray._io import clock
from eray._ray.tenant import refused
from eray.errors import NodeLockedError

LOCKED = NodeLockedError("/run/node.lock", "process 7 on this node")
HEAD, OTHER = 0, 1


@pytest.mark.parametrize(
    ("rank", "tenant", "words"),
    [
        (
            HEAD,
            {},
            f"job 12 has a cluster already: `eray run -n 3 -- python a.py` runs for 3 min 20 s, from {SPEC.nodes[0]} (",
        ),
        (
            HEAD,
            {"began_at": None},
            f"`eray run -n 3 -- python a.py` runs, from {SPEC.nodes[0]} (process 7 on this node); wait",
        ),
        (HEAD, {"purpose": "up", "program": []}, "`eray up` runs for 3 min 20 s"),
        (OTHER, {}, None),
        (OTHER, {"node": "n9"}, "from n9 (process 7 on this node)"),
        (HEAD, {"purpose": "tasks"}, "/run/node.lock is held by process 7 on this node"),
        (OTHER, {"key": None}, "/run/node.lock is held by process 7 on this node"),
    ],
    ids=["head", "no age", "eray up", "the head says it", "another's head", "a step's own", "unreadable"],
)
def test_second_cluster_of_a_job_is_told_of_the_first(rank, tenant, words, tmp_path: Path):
    spec = replace(SPEC, job="12", node_rank=rank, run_dir=str(tmp_path))
    about = spec.identity | {"purpose": "run", "program": ["python", "a.py"], "began_at": clock.unix() - 200.5} | tenant
    (tmp_path / BEACON_FILE).write_text(json.dumps(about | {"pid": os.getpid()}))
    if words is None:
        assert refused(spec, LOCKED) == 4
        return
    with pytest.raises(NodeLockedError) as caught:
        refused(spec, LOCKED)
    assert words in str(caught.value)


def test_second_cluster_where_the_first_has_told_nothing_names_the_lock(tmp_path: Path):
    with pytest.raises(NodeLockedError) as caught:
        refused(replace(SPEC, run_dir=str(tmp_path)), LOCKED)
    assert caught.value is LOCKED
