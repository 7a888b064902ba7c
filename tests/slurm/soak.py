"""Pairs of jobs on the same nodes: one dies at a random moment in a random way, its neighbour must not notice.

All chance comes from one seed, so that a run can be repeated.
"""

import random
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from slurm_rig import GUEST, USER, Job, Rig
from victims import VICTIMS, kill, processes_of, secrets_left, survivors
from worlds import FAIL, WHO

HEAD_ONLY = ("gcs", "coordinator")
LIVES_ON = ("coordinator", "guard")
"""What a world survives; it is cancelled then."""
OF_THE_JOB = ("scancel", "scancel --signal=KILL", "scancel step", "requeue")
OF_A_NODE = ("kill-node", "unplug-node")
KILLED = tuple(kind for kind in VICTIMS if kind != "idle worker")  # Ray may have none of those
DEATHS = [*KILLED, *KILLED, *OF_THE_JOB, *OF_A_NODE]
GONE_S, NODE_GONE_S = 8.0, 15.0
"""Until nothing is left: Slurm's own part, KillWait (5 s) for one, and the silence of a lost node (5 s) included."""
START_S = 20.0
"""ERAY_CLUSTER_TIMEOUT_S: a node that dies before it has reported is one that never came."""


@dataclass(frozen=True)
class Pair:
    """What chance has chosen: a job that dies and a neighbour that does not."""

    user: str
    neighbour: str
    way: str
    nodes: int
    death: str
    after_join: bool
    delay_s: float
    chosen: float

    @classmethod
    def draw(cls, chance: random.Random) -> "Pair":
        """Draw a pair."""
        return cls(
            user=chance.choice((USER, GUEST)),
            neighbour=chance.choice((USER, GUEST)),
            way=chance.choice(("run", "srun")),
            nodes=chance.choice((1, 2, 2, 3)),
            death=chance.choice(DEATHS),
            after_join=chance.random() < 0.5,
            delay_s=chance.uniform(0.0, 4.0),
            chosen=chance.random(),
        )

    def __str__(self) -> str:
        moment = f"{self.delay_s:.1f} s after {'joining' if self.after_join else 'the start'}"
        return f"{self.way} of {self.user} on {self.nodes} nodes: {self.death} {moment}"


def soak(rig: Rig, seed: int, jobs: int, say: Callable[[str], None]) -> None:
    """Run ``jobs`` jobs in pairs; raise AssertionError when something is left or a neighbour fails."""
    chance = random.Random(seed)
    for number in range(jobs // 2):
        pair, began = Pair.draw(chance), time.monotonic()
        said = _run(rig, pair, number)
        say(f"seed {seed}, pair {number + 1} of {jobs // 2} ({time.monotonic() - began:.0f} s): {pair}: {said}")
    for _ in range(2):  # what Slurm's SIGKILL has left a moment ago is not swept yet, but by the next
        for user in (USER, GUEST):  # each sweeps what is left of others of this user's
            rig.srun(["-N3", "-n3", "--ntasks-per-node=1", "python", WHO], user=user).check()
        if not rig.leftovers():
            break
    rig.wait_until(lambda: not rig.leftovers(), 2, f"nothing to be left: {rig.leftovers()}")


def _run(rig: Rig, pair: Pair, number: int) -> str:
    meeting = rig.share.out / f"soak-{number}"
    meeting.mkdir()
    meeting.chmod(0o1777)
    names = rig.nodes[: pair.nodes]
    count = len(names) * processes_per_node(names)
    lost = names[int(pair.chosen * len(names))] if pair.death in OF_A_NODE else None
    beside = [node for node in rig.nodes if node != lost][:2]
    neighbour = _submit(rig, "run", WHO, beside, pair.neighbour, {"MEET": f"{meeting}:2"})
    doomed = _submit(rig, pair.way, f"{FAIL} -1 wait", list(names), pair.user, {})
    try:
        rig.wait_until(lambda: doomed.state == "RUNNING", 30, f"job {doomed.id} to run")
        if pair.after_join:
            rig.wait_until(lambda: doomed.output.count("has joined") == count, 60, f"{count} to join: {doomed.output}")
        time.sleep(pair.delay_s)  # the moment is what chance has chosen
        said = _die(rig, pair, doomed, names, lost)
        rig.wait_until(lambda: any(meeting.iterdir()) or neighbour.ended, 60, "the neighbour to be there")
        (meeting / "go on").touch()
        assert neighbour.wait().state == "COMPLETED", f"{pair} took its neighbour along: {neighbour.output}"
    finally:
        if lost is not None:
            rig.run(["scancel", doomed.id], "root")
            rig.restore(lost)
        shutil.rmtree(meeting)
    rig.wait_until(lambda: not rig.leftover_processes(), 2, f"no process to be left: {rig.leftover_processes()}")
    assert secrets_left(rig) == [], f"{pair} leaves a secret"
    return said


def processes_per_node(nodes: Sequence[str]) -> int:
    """Return one, or two of a single node: a process alone outlives its cluster, as in a notebook."""
    return 2 if len(nodes) == 1 else 1


def _submit(rig: Rig, way: str, program: str, nodes: list[str], user: str, env: dict[str, str]) -> Job:
    count, each = len(nodes), processes_per_node(nodes)
    start = f"eray run --processes-per-node {each} --" if way == "run" else f"srun --ntasks-per-node={each}"
    options = [f"-N{count}", f"--ntasks-per-node={each}", "-c2", "-w", ",".join(nodes)]
    env = {"ERAY_CLUSTER_TIMEOUT_S": f"{START_S:g}"} | env
    return rig.sbatch(f"{start} python {program}; exit $?", *options, user=user, env=env)


def _die(rig: Rig, pair: Pair, job: Job, names: tuple[str, ...], lost: str | None) -> str:
    """Let the job die, wait until nothing of it is left where it can be seen, and say how that went."""
    alive = tuple(node for node in names if node != lost or pair.death == "unplug-node")
    count = len(names) * processes_per_node(names)
    began = time.monotonic()
    if pair.death in KILLED:
        node = names[0] if pair.death in HEAD_ONLY else names[int(pair.chosen * len(names))]
        found = rig.wait_until(
            lambda: job.ended or processes_of(rig, node, pair.death, job.id),
            60,
            f"a {pair.death} of job {job.id} on {node}: {job.output}",
        )
        assert found is not True, job.output
        began = kill(found[-1])
        if pair.death in LIVES_ON:
            rig.wait_until(lambda: job.output.count("has joined") == count, 60, f"{count} to join: {job.output}")
            began = time.monotonic()
            rig.run(["scancel", job.id], "root").check()
    elif pair.death == "requeue":
        rig.run(["scontrol", "requeuehold", job.id], "root").check()
    elif pair.death == "scancel step":
        rig.run(["scancel", f"{job.id}.0"], "root").check()
    elif pair.death in OF_A_NODE:
        rig.control(pair.death, lost or "")
    else:
        rig.run([*pair.death.split(), job.id], "root").check()
    limit_s = (NODE_GONE_S if lost else GONE_S) + (0.0 if pair.after_join else START_S)
    rig.wait_until(lambda: not survivors(rig, alive, job.id), limit_s, f"the end of job {job.id} ({pair})")
    took = time.monotonic() - began
    if pair.death == "requeue":
        rig.run(["scancel", job.id], "root").check()
    return f"gone in {took:.1f} s, job {job.id} {job.state}"
