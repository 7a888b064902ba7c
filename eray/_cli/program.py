"""The program that a command starts, as it stands on the command line after ``--``."""

from collections.abc import Sequence

from eray.errors import UsageError


def program_of(words: Sequence[str], example: str) -> list[str]:
    """Return the program's words.

    Raises:
        UsageError: there are none; the message shows ``example``.
    """
    program = list(words[1:] if words[:1] == ["--"] else words)
    if not program:
        raise UsageError(f"no program; write it after `--`, such as `{example}`")
    return program
