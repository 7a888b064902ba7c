"""Why a program cannot be started, and with which code a command then ends: as a shell has it."""

import errno
from dataclasses import dataclass

NOT_FOUND, NOT_EXECUTABLE = 127, 126
REASONS = {
    errno.ENOENT: "there is no such file, or the interpreter of its first line is not there",
    errno.EACCES: "it may not be executed; `chmod +x` it, or start it by its interpreter (`python train.py`)",
    errno.ENOEXEC: "it is neither a program of this machine nor a script whose first line names its interpreter",
    errno.E2BIG: "its arguments and environment are too long for the kernel",
}


@dataclass(frozen=True)
class ExecFailure:
    """The exit code, and the reason with what to do about it."""

    code: int
    reason: str


def exec_failure(program: str, number: int | None, words: str, *, on_path: bool, is_directory: bool) -> ExecFailure:
    """Return what the kernel's error on starting ``program`` means.

    Args:
        program: the first word of the command.
        number: the error's number.
        words: the kernel's words for it.
        on_path: whether a bare name is found on PATH; where one is not, a directory of PATH that may not be searched
            makes "permission denied" of it.
        is_directory: whether the program is one; the kernel says "permission denied" of that too.
    """
    if "/" not in program and not on_path:
        return ExecFailure(NOT_FOUND, f"no directory of that node's PATH has {program!r}; give its whole path")
    if is_directory and "/" in program:
        return ExecFailure(NOT_EXECUTABLE, "it is a directory; name the program in it (`python train.py`)")
    code = NOT_FOUND if number == errno.ENOENT else NOT_EXECUTABLE
    return ExecFailure(code, REASONS.get(number or 0, words))
