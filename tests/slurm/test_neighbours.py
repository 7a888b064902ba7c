"""Jobs, steps, users and other people's Rays on the same nodes at the same time: none notices another."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from slurm_rig import GUEST, USER, Rig
from worlds import WHO, expect_nothing_left, read_worlds

from eray._core.naming import candidate_ports

pytestmark = [pytest.mark.slurm, pytest.mark.ray, pytest.mark.jax]
NODES = ["-N2", "-w", "node01,node02", "-n2", "--ntasks-per-node=1", "-c2"]
PLACES = [("node01", 0), ("node02", 0)]
RAY = "exec python -m ray.scripts.scripts start --head --block"


@pytest.fixture
def meeting(rig: Rig) -> Iterator[Path]:
    """A directory where worlds wait for one another; all users may come."""
    path = rig.share.out / "neighbours"
    path.mkdir()
    path.chmod(0o1777)
    yield path
    for each in path.iterdir():
        each.unlink()
    path.rmdir()


def range_with_a_collision(keys: list[str]) -> str:
    """Return an ERAY_PORT_RANGE in which two of these clusters try the same port first."""
    for high in range(18015, 24000):
        if len({candidate_ports("rig", key, 0, (18000, high))[0] for key in keys}) < len(keys):
            return f"18000-{high}"
    raise AssertionError(f"no range in which two of {keys} collide")


def next_job_id(rig: Rig) -> int:
    return int(rig.sbatch("true").wait(30).id) + 1


def test_jobs_of_two_users_whose_ports_collide_share_their_nodes(rig: Rig, meeting: Path) -> None:
    first = next_job_id(rig)
    keys = [str(first), f"{first + 1}.0", str(first + 2)]
    env = {"MEET": f"{meeting}:3", "ERAY_PORT_RANGE": range_with_a_collision(keys)}
    jobs = [
        rig.sbatch(f"eray run -- python {WHO}", *NODES, env=env),
        rig.sbatch(f"srun python {WHO}", *NODES, env=env),
        rig.sbatch(f"eray run -- python {WHO}", *NODES, env=env, user=GUEST),
    ]
    assert [job.id for job in jobs] == [str(first), str(first + 1), str(first + 2)]
    for job in jobs:
        assert job.wait().state == "COMPLETED", job.output
    expect_nothing_left(rig)
    worlds = read_worlds("".join(job.output for job in jobs))
    assert [world.places for world in worlds] == [PLACES] * 3
    assert [world.topology["key"] for world in worlds] == keys, "each has its own cluster"
    kept = {user: sorted(path.name for path in job_directories(rig, user)) for user in (USER, GUEST)}
    assert kept[GUEST] == [f"rig-{first + 2}"]
    assert {f"rig-{first}", f"rig-{first + 1}"} <= set(kept[USER])
    assert f"rig-{first + 2}" not in kept[USER]


def job_directories(rig: Rig, user: str) -> list[Path]:
    return list((rig.share.home(user) / ".eray" / "jobs").iterdir())


def test_steps_of_one_job_at_the_same_time_have_their_own_clusters(rig: Rig, meeting: Path) -> None:
    step = f"srun --overlap -N2 -n2 --ntasks-per-node=1 python {WHO}"
    script = f"{step} & first=$!; {step} & second=$!; wait $first && wait $second"
    job = rig.sbatch(script, "-N2", "-n2", env={"MEET": f"{meeting}:2"}).wait()
    expect_nothing_left(rig)
    assert job.state == "COMPLETED", job.output
    worlds = read_worlds(job.output)
    assert [world.places for world in worlds] == [PLACES] * 2
    assert [world.topology["key"] for world in worlds] == [f"{job.id}.0", f"{job.id}.1"]


def start_foreign_ray(rig: Rig, node: str, user: str) -> str:
    """Start a Ray as a user does by hand, with its default ports and directories; return its session's id."""
    start = f"cd /tmp; setsid bash -c 'echo $$ >{user}.pid; {RAY} >{user}.log 2>&1' & sleep 0.2"
    rig.exec(node, start, user=user).check()
    session = rig.wait_until(lambda: rig.exec(node, ["cat", f"/tmp/{user}.pid"]).stdout.strip(), 5, "its pid")
    rig.wait_until(lambda: "Ray runtime started" in foreign_log(rig, node, user), 60, "a foreign Ray to start")
    return session


def foreign_log(rig: Rig, node: str, user: str) -> str:
    return rig.exec(node, ["cat", f"/tmp/{user}.log"]).stdout


def ray_pids(rig: Rig, node: str) -> set[int]:
    return {process.pid for process in rig.processes(node) if process.belongs_to_eray_or_ray}


@pytest.mark.full
def test_foreign_rays_on_default_ports_before_during_and_after(rig: Rig, meeting: Path) -> None:
    mine = start_foreign_ray(rig, "node01", USER)
    theirs = None
    try:
        before = ray_pids(rig, "node01")
        job = rig.sbatch(f"ERAY_DASHBOARD=1 srun python {WHO}", *NODES, env={"MEET": f"{meeting}:2"})
        rig.wait_until(lambda: any(meeting.iterdir()) or job.state == "FAILED", 60, "the world to run")
        theirs = start_foreign_ray(rig, "node02", GUEST)
        others = {process.pid for process in rig.processes("node02") if process.user == GUEST}
        stopped = rig.exec("node02", ["python", "-m", "ray.scripts.scripts", "stop"], user=GUEST)
        assert re.search(r"Stopped (all|only)", stopped.output), (
            stopped.output
        )  # its own only: ours are of another user
        (meeting / "go on").touch()
        assert job.wait().state == "COMPLETED", job.output
        assert [world.places for world in read_worlds(job.output)] == [PLACES]
        assert ray_pids(rig, "node01") == before, "the Ray that was there before is there afterwards"
        assert not others & {process.pid for process in rig.processes("node02") if "raylet" in process.cmdline}
        use = "import ray; ray.init('10.77.0.11:6379'); print(ray.get(ray.remote(lambda: 'it works').remote()))"
        assert "it works" in rig.exec("node01", ["python", "-c", use], user=USER).check().output
    finally:
        for node, session in (("node01", mine), ("node02", theirs)):
            if session is not None:
                rig.exec(node, f"kill -KILL $(ps -o pid= -s {session}); rm -rf /tmp/ray /tmp/{USER}.* /tmp/{GUEST}.*")
    rig.wait_until(lambda: not rig.leftover_processes(), 5, "the foreign Rays to be gone")
