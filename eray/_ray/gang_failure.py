"""Why a process of a launched world ended, in words, and the error that its driver raises."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import ray.exceptions

from eray._core.gang_layout import Seat
from eray._core.outcome import ProgramFailure
from eray._ray.frames import show_frames
from eray._ray.gang_actor import ActorFacts
from eray.errors import ErayError, JoinError, WorldFailedError

WITHOUT_A_WORD = "ended without a word: killed (SIGKILL, by hand or out of memory?), aborted, or crashed"
NAMED, WORD_CHARACTERS = 16, 300


@dataclass(frozen=True)
class Member:
    """One process of a launched world."""

    process_index: int
    seat: Seat
    facts: ActorFacts
    actor: Any

    @property
    def name(self) -> str:
        """The process as messages name it."""
        return f"process {self.process_index} on {self.seat.node} (pid {self.facts.pid})"


class GangFailure(ProgramFailure):
    """A generation of a launched world has failed: the first cause, its exit code, and the error to raise for it.

    ``culprit`` is the process's index, None where a node or the coordinator is to blame.
    """

    def __init__(self, cause: str, code: int, error: BaseException, culprit: int | None = None) -> None:
        super().__init__(cause, code, error, culprit)
        self.cause, self.code, self.error, self.culprit = cause, code, error, culprit

    @contextmanager
    def kept_over(self, kind: type[Exception]) -> Iterator[None]:
        """Raise this failure where a restart after it ends with an error of ``kind``, which becomes a note."""
        try:
            yield
        except kind as exc:
            self.error.add_note(f"eray: the world is not started again: {exc}")
            raise self from exc


def end_words(error: BaseException) -> str:
    """Return how a process ended, as words after its name."""
    if isinstance(error, ray.exceptions.OutOfMemoryError):
        return "was killed by Ray: its node ran out of memory"
    if isinstance(error, ray.exceptions.NodeDiedError):
        return "is lost with its node"
    if isinstance(error, ray.exceptions.RuntimeEnvSetupError):
        return f"has no runtime environment: {error}"
    if isinstance(error, ray.exceptions.RayTaskError):
        cause = error.cause if isinstance(error.cause, BaseException) else error
        return f"raised {type(cause).__name__}: {str(cause)[:WORD_CHARACTERS]}"
    if isinstance(error, ray.exceptions.RayActorError):
        return WITHOUT_A_WORD
    if isinstance(error, ray.exceptions.UnserializableException):
        last = [line.strip() for line in str(error).splitlines() if line.strip()][-1]
        return (
            f"raised an exception that cannot be unpickled: {last[:WORD_CHARACTERS]}; its class must take as arguments "
            "what it gives to super().__init__()"
        )
    return f"failed: {type(error).__name__}: {str(error)[:WORD_CHARACTERS]}"


def has_raised(error: BaseException) -> bool:
    """Tell whether this is what the program itself raised, not the death of its process."""
    return isinstance(error, ray.exceptions.RayTaskError) or not isinstance(error, ray.exceptions.RayError)


def failure_of(
    world: str, generation: int, member: Member, error: BaseException, killed: str | None = None
) -> GangFailure:
    """Return the failure that one process's end makes. What the program raised is raised in the driver as it is.

    ``killed`` are the words for what the kernel did to it, where that is known.
    """
    cause = f"{member.name} {killed if killed and not has_raised(error) else end_words(error)}"
    code = error.exit_code if isinstance(error, ErayError) else JoinError.exit_code
    if has_raised(error):
        show_frames(error)
        return GangFailure(cause, code, error, member.process_index)
    return GangFailure(cause, code, failed_by(world, generation, cause, error), member.process_index)


def failed_by(world: str, generation: int, cause: str, error: BaseException) -> WorldFailedError:
    """Return the error of a world that failed by ``error`` of Ray's, whose frames tell nothing."""
    failed = WorldFailedError(world, generation, cause)
    failed.__cause__ = error.with_traceback(None)
    return failed


def annotate(failure: GangFailure, world: str, generation: int, tail: Sequence[str], others: Mapping[str, str]) -> None:
    """Add to the error of a failure what its reader needs: who it was, its last lines, and who failed besides."""
    notes = []
    if not isinstance(failure.error, WorldFailedError):  # which says it itself
        notes.append(f"eray: world {world!r} (generation {generation}) failed: {failure.cause.splitlines()[0]}")
    if tail:
        notes.append("eray: its last lines on stderr:\n" + "\n".join(f"    {line}" for line in tail))
    if others:
        listed = [f"    {name} {words.splitlines()[0]}" for name, words in others.items()]
        more = [f"    and {len(listed) - NAMED} more"] if len(listed) > NAMED else []
        notes.append("eray: also failed:\n" + "\n".join([*listed[:NAMED], *more]))
    for note in notes:
        failure.error.add_note(note)
