"""Who looks at the cluster of a job sees it from everywhere, while it runs and afterwards."""

import json
from typing import Any

import pytest
from slurm_rig import Job, Rig
from worlds import FAIL, GONE_S, LIVES, expect_nothing_left

from eray._core.picture import Picture, Track

pytestmark = [pytest.mark.slurm, pytest.mark.ray, pytest.mark.jax]


def seen(rig: Rig, *words: str, user: str | None = None) -> Picture:
    """Return what ``eray status`` shows."""
    result = rig.run([*words[:-1], "eray", "status", "--json", *words[-1].split()])
    return Picture.model_validate_json(result.check().stdout)


def on(node: str, job: Job) -> list[str]:
    """Return the words that run a command on a node of the job."""
    return ["srun", f"--jobid={job.id}", "--overlap", "-N1", "-n1", f"-w{node}"]


def names(track: Track) -> set[str]:
    return {span.name for span in track.spans}


def test_job_is_seen_from_its_nodes_from_the_login_node_and_afterwards(rig: Rig) -> None:
    job = rig.sbatch(f"eray run --processes-per-node 2 -- python {FAIL} -1 wait", "-N2")
    rig.wait_until(lambda: job.output.count("has joined") == 4 or job.ended, 60, "all to join")
    login = seen(rig, f"--job {job.id}")
    looks = [login, *(seen(rig, *on(node, job), "") for node in ("node01", "node02"))]
    for picture in looks:
        assert (picture.key, picture.phase, picture.purpose, picture.head) == (job.id, "up", "run", "node01")
        assert [(node.name, node.state) for node in picture.nodes] == [("node01", "ready"), ("node02", "ready")]
        assert picture.topology is not None
        (world,) = picture.topology.worlds
        assert [process.state for process in world.processes] == ["running"] * 4
    assert login.environment["SLURM_JOB_NODELIST"] == "node[01-02]"
    assert not any("SECRET" in name for name in login.environment)
    tracks = {(track.node, track.process_index): track for track in login.tracks}
    assert set(tracks) == {
        ("node01", None),
        ("node02", None),
        ("node01", 0),
        ("node01", 1),
        ("node02", 2),
        ("node02", 3),
    }
    assert names(tracks["node01", None]) >= {"supervisor", "lock", "roll-call", "gcs", "raylet", "coordinator", "ready"}
    assert names(tracks["node02", None]) >= {"supervisor", "lock", "roll-call", "raylet", "ready"}
    assert names(tracks["node01", 0]) >= {"program", "import jax", "join", "publish", "initialise", "all running"}
    assert names(tracks["node02", 3]) >= {"program", "import jax", "join", "dial", "initialise", "all running"}
    text = rig.run(["eray", "status", "--job", job.id]).check().stdout
    assert "4 of 4 running" in text
    assert "\x1b" not in text
    stranger: dict[str, Any] = {"user": "guest"}
    refused = rig.run(["eray", "status", "--job", job.id], **stranger)
    assert refused.returncode == 4, refused.output
    job.cancel()
    job.wait(60)
    expect_nothing_left(rig)
    after = seen(rig, f"--job {job.id}")
    assert after.phase == "ended"
    assert after.ending is not None
    assert after.ending.code == 143
    assert after.tracks == login.tracks
    timeline = rig.run(["eray", "timeline", "--json", "--job", job.id]).check().stdout
    (path,) = json.loads(timeline)["paths"]
    assert (path["world"], path["is_complete"]) == ("main", True)
    page = rig.run(["eray", "report", "-o", "-", "--job", job.id]).check().stdout
    assert "node02" in page
    assert "stopped by SIGTERM" in page


@pytest.mark.full
def test_watch_waits_for_a_job_in_the_queue_and_over_a_requeue(rig: Rig) -> None:
    job = rig.sbatch(LIVES, "-N2", "--hold", "--requeue", "--open-mode=append")
    none = rig.run(["eray", "status", "--job", job.id])
    assert none.returncode == 4
    assert (
        f"job {job.id} is PENDING (JobHeldUser) in Slurm's queue: `eray status --job {job.id} --watch`" in none.output
    )
    watch = rig.start(["eray", "status", "--job", job.id, "--watch"])
    waits = f"eray: job {job.id} has no cluster yet and is PENDING (JobHeldUser); waiting for it\n"
    rig.wait_until(lambda: waits in watch.output, 10, "the watch to wait")
    rig.run(["scontrol", "release", job.id]).check()
    rig.wait_until(lambda: "2 of 2 running" in watch.output, 60, "the watch to see the first life")
    rig.run(["scontrol", "requeue", job.id]).check()
    rig.wait_until(lambda: not rig.leftover_directories(), 10 + GONE_S, "nothing to be left of the first life")
    rig.wait_until(lambda: "stopped by SIGTERM at" in watch.output, 10, "the watch to see the end of the first life")
    assert job.wait(90).state == "COMPLETED", job.output
    assert "second life 0\n" in job.output
    assert "Traceback" not in job.output
    seen = watch.wait(10)
    assert seen.returncode == 0, seen.output
    firsts = [part.splitlines()[0] for part in seen.stdout.split("\n\n")]
    assert [first.rpartition(" at ")[0] for first in firsts if " at " in first] == [
        f"job {job.id} on rig, eray run: stopped by SIGTERM",
        f"job {job.id} (restart 1) on rig, eray run: ended well",
    ], "each state is shown once"
    assert "  queue       " in seen.stdout
    assert "the job starts again (restart 1)" in seen.stdout
    expect_nothing_left(rig)
    assert rig.run(["eray", "status", "--job", "999999"]).returncode == 4
    assert rig.run(["eray", "status", "--watch", "--job", "999999"], timeout_s=20).returncode == 4
