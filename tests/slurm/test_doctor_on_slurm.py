"""`eray doctor` where people start it: the login node, a batch script, every node of a job."""

import json
import re
from collections import defaultdict
from typing import Any

import pytest
from slurm_rig import Rig

pytestmark = pytest.mark.slurm


def checkups(output: str) -> dict[str, dict[str, tuple[str, str, str | None]]]:
    """Return (status, found, remedy) by check and node; each node prints a line of JSON a finding."""
    found = defaultdict[str, dict[str, tuple[str, str, str | None]]](dict)
    for line in output.splitlines():
        if line.startswith("{"):
            each: dict[str, Any] = json.loads(line)
            found[each["node"]][each["name"]] = (each["status"], each["found"], each["remedy"])
    return found


def test_every_node_of_a_job_by_srun(rig: Rig) -> None:
    result = rig.srun(["-N3", "-n3", "--ntasks-per-node=1", "eray", "doctor", "--json"])
    found = checkups(result.stdout)
    assert sorted(found) == ["node01", "node02", "node03"], result.output
    for checks in found.values():
        assert {status for status, _, _ in checks.values()} <= {"ok", "note", "warning"}, checks
        assert all((status in ("warning", "error")) <= (remedy is not None) for status, _, remedy in checks.values())
    assert len({checks["versions"][1] for checks in found.values()}) == 1, "one environment"
    assert result.returncode == 0


def test_lines_of_all_nodes_can_be_told_apart(rig: Rig) -> None:
    result = rig.srun(["-N2", "-n2", "--ntasks-per-node=1", "eray", "doctor"]).check()
    lines = result.stdout.splitlines()
    assert {line.partition(": ")[0] for line in lines} == {"node01", "node02"}, result.output


def test_batch_script_and_login_node(rig: Rig) -> None:
    job = rig.sbatch("eray doctor --json", "-N2").wait()
    checks = checkups(job.output)["node01"]
    assert job.exit_code == 0, job.output
    assert checks["srun"][0] == "ok"
    assert f"job {job.id}" in checks["environment"][1]
    result = rig.run(["eray", "doctor"])
    assert result.returncode == 0, result.output
    assert re.search(r"^\S+: (nothing is wrong|\d+ warnings?)$", result.stdout, re.M)


def test_node_that_cannot_work_is_named_with_the_remedy(rig: Rig) -> None:
    rig.exec("node02", "printf '127.0.0.1 localhost\\n127.0.1.1 node02\\n10.77.0.11 node01\\n' >/tmp/hosts").check()
    rig.exec("node02", "mount --bind /tmp/hosts /etc/hosts && mount -t tmpfs -o size=8m tmpfs /dev/shm").check()
    try:
        result = rig.srun(["-N2", "-n2", "--ntasks-per-node=1", "eray", "doctor", "--json"])
    finally:
        rig.exec("node02", "umount /etc/hosts; umount /dev/shm; rm /tmp/hosts").check()
    found = checkups(result.stdout)
    assert result.returncode == 3, result.output
    status, words, remedy = found["node02"]["address"]
    assert (status, "127.0.1.1" in words, "/etc/hosts" in str(remedy)) == ("error", True, True), words
    assert found["node02"]["shared-memory"][0] == "error"
    assert found["node01"]["address"][0] == "ok"
