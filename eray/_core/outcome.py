"""How a cluster ends: the first cause, and the exit code that counts."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from eray.errors import ClusterError


def keeps_logs(job: str | None, code: int) -> bool:
    """Tell whether the logs are kept: those of a job always, of a cluster of one machine where Ray or eray failed."""
    return job is not None or code == ClusterError.exit_code


class ProgramFailure(Exception):
    """Carries what is to be raised for the failure of a program's world through eray's own code: ``error``."""

    error: BaseException


@dataclass
class Outcome:
    """The first cause of a failure, and when the command may end with which code.

    ``running`` are the processes that we started and that still run. The code of the first process that ended badly
    by itself always wins; processes that leave because they heard of the failure do so with ``told``.
    """

    running: set[int] = field(default_factory=set)
    cause: str | None = None
    told: int | None = None
    culprit: int | None = None

    def failed(self, cause: str, code: int, culprit: int | None = None) -> bool:
        """Take a cause; tell whether it is the first. ``culprit`` is the process that it blames."""
        if self.cause is not None:
            return False
        self.cause, self.told, self.culprit = cause, code, culprit
        return True

    def lost(self, process_indexes: Iterable[int]) -> int | None:
        """Take the loss of processes whose end nobody will tell, and return the code when it is decided by that."""
        before = len(self.running)
        self.running.difference_update(process_indexes)
        return self.told if before and not self.running else None

    def ended(self, process_index: int, code: int) -> int | None:
        """Take the end of a process, and return the command's code when it is decided."""
        self.running.discard(process_index)
        if code == 0:
            return None if self.running else self.told or 0
        if self.told is None:
            return code
        if self.culprit == process_index or (self.culprit is None and code != self.told):
            return code
        return None if self.running else self.told
