"""Ask Slurm's queue about a job, where squeue is there; seldom, for many people share slurmctld."""

import shutil
import subprocess
from collections.abc import Mapping

from eray._core.picture import Queued
from eray._io import clock
from eray._slurm.queue import queue_command, read_queue

ASK_S = 30.0
ANSWER_S = 5.0
UNKNOWN_JOB = "Invalid job id"
"""What squeue says, with an error, of a job that has been over for some minutes, or never was."""


class Queue:
    """Slurm's queue, as squeue tells of it: an answer holds for ``ASK_S`` seconds."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._answers: dict[str, tuple[float, str | None]] = {}

    def of(self, job: str, cluster: str = "") -> Queued | None:
        """Return what the queue says of ``job`` of the Slurm cluster ``cluster``; None: it is over, or not known."""
        return read_queue(self._answer(job) or "", job, cluster)

    def lacks(self, job: str) -> bool:
        """Tell whether the queue is known not to have ``job``: it is over, or there never was one."""
        answer = self._answer(job)
        return answer is not None and read_queue(answer, job) is None

    def forget(self) -> None:
        """Ask anew next time."""
        self._answers.clear()

    def _answer(self, job: str) -> str | None:
        at, answer = self._answers.get(job, (None, None))
        if at is None or clock.monotonic() - at > ASK_S:
            new = self._ask(job)
            answer = answer if new is None else new
            self._answers[job] = clock.monotonic(), answer
        return answer

    def _ask(self, job: str) -> str | None:
        """Return squeue's answer, None where slurmctld has none now."""
        command = queue_command(job, self._environ)
        program = shutil.which(command.argv[0], path=self._environ.get("PATH", ""))
        if program is None:
            return None
        try:
            done = subprocess.run(
                (program, *command.argv[1:]),
                env=command.env,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=ANSWER_S,
                text=True,
                errors="replace",
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout if done.returncode == 0 or UNKNOWN_JOB in done.stderr else None
