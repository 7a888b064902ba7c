"""What Slurm's queue says of a job: read from squeue's answer, asked seldom, kept where slurmctld is silent."""

import os
from pathlib import Path

import pytest

from eray._core.picture import Queued
from eray._io import clock
from eray._queue import ASK_S, Queue
from eray._slurm.queue import FIELDS, WIDTH, queue_command, read_queue


def row(*cells: str) -> str:
    """Return a line of squeue's for ``FIELDS``: padded, and cut where a cell is too long."""
    assert len(cells) == len(FIELDS)
    return "".join(f"{cell:<{WIDTH}}"[:WIDTH] for cell in cells) + "\n"


PENDING = row("rig", "42", "0", "PENDING", "Priority")
HELD = row(
    "rig", "43", "2", "PENDING", "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher partitions"
)


class Squeue:
    """A squeue on a PATH of its own, which notes its calls and environment."""

    def __init__(self, root: Path) -> None:
        self.root, self.program = root, root / "bin" / "squeue"
        self.program.parent.mkdir()
        self.environ = {"PATH": str(self.program.parent), "SQUEUE_FORMAT": "%j", "SLURM_CONF": "/conf"}

    def answers(self, text: str, code: int = 0, error: str = "") -> None:
        """Let it answer so from now on."""
        (self.root / "answer").write_text(text)
        (self.root / "error").write_text(error)
        self.program.write_text(
            f'#!/bin/sh\nexport PATH={os.defpath}\necho "$@" >> {self.root}/calls\nenv > {self.root}/env\n'
            f"cat {self.root}/answer\ncat {self.root}/error >&2\nexit {code}\n"
        )
        self.program.chmod(0o755)

    @property
    def calls(self) -> list[str]:
        """The arguments of each call."""
        return (self.root / "calls").read_text().splitlines()


@pytest.fixture
def squeue(tmp_path: Path) -> Squeue:
    return Squeue(tmp_path)


@pytest.mark.parametrize(
    ("text", "job", "cluster", "found"),
    [
        (PENDING, "42", "rig", Queued(state="PENDING", reason="Priority")),
        (PENDING, "42", "", Queued(state="PENDING", reason="Priority")),
        (PENDING, "42", "other", None),
        (PENDING, "4", "rig", None),
        (PENDING + HELD, "43", "rig", Queued(state="PENDING", reason=HELD[4 * WIDTH :].strip(), restart=2)),
        (row("rig", "42", "1", "RUNNING", "None"), "42", "rig", Queued(state="RUNNING", reason="None", restart=1)),
        ("", "42", "", None),
        ("\n", "42", "", None),
        ("slurm_load_jobs error: no such thing\n", "42", "", None),
        (row("rig", "42", "N/A", "PENDING", "None"), "42", "", None),
    ],
)
def test_answer_is_read(text: str, job: str, cluster: str, found: Queued | None) -> None:
    assert read_queue(text, job, cluster) == found


@pytest.mark.parametrize(
    ("queued", "words"),
    [
        (Queued(state="PENDING", reason="Priority"), "PENDING (Priority)"),
        (Queued(state="RUNNING", reason="None"), "RUNNING"),
        (Queued(state="RUNNING"), "RUNNING"),
    ],
)
def test_queue_is_told_in_slurms_words(queued: Queued, words: str) -> None:
    assert str(queued) == words


def test_squeue_is_asked_once_until_its_answer_is_old(squeue: Squeue, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(clock, "monotonic", lambda: now)
    squeue.answers(PENDING)
    queue = Queue(squeue.environ)
    assert queue.of("42", "rig") == queue.of("42") == Queued(state="PENDING", reason="Priority")
    assert squeue.calls == [" ".join(queue_command("42", {}).argv[1:])]
    given = (squeue.root / "env").read_text()
    assert "SLURM_CONF=/conf" in given
    assert "SQUEUE_FORMAT" not in given
    squeue.answers("")
    now = ASK_S + 1
    assert queue.of("42") is None
    squeue.answers(PENDING)
    queue.forget()
    assert queue.of("42") is not None
    assert len(squeue.calls) == 3


@pytest.mark.parametrize(
    ("code", "error", "is_kept"),
    [
        (1, "slurm_load_jobs error: Unable to contact slurm controller (connect failure)", True),
        (1, "slurm_load_jobs error: Invalid job id specified", False),
        (0, "", False),
        (127, "", True),
    ],
    ids=["slurmctld restarts", "over for long", "over", "broken"],
)
def test_answer_is_kept_while_slurmctld_has_none(
    squeue: Squeue, monkeypatch: pytest.MonkeyPatch, code: int, error: str, is_kept: bool
) -> None:
    now = 0.0
    monkeypatch.setattr(clock, "monotonic", lambda: now)
    squeue.answers("", code, error)
    queue = Queue(squeue.environ)
    assert queue.of("42") is None, "nothing is known yet"
    assert queue.lacks("42") == (not is_kept)
    squeue.answers(PENDING)
    now += ASK_S + 1
    assert queue.of("42") is not None
    assert not queue.lacks("42")
    assert queue.of("42", "other") is None
    squeue.answers("", code, error)
    now += ASK_S + 1
    assert (queue.of("42") is not None) == is_kept


def test_machine_without_slurm_knows_nothing_of_a_queue(tmp_path: Path) -> None:
    for queue in (Queue({"PATH": str(tmp_path)}), Queue({})):
        assert queue.of("42") is None
        assert not queue.lacks("42")
