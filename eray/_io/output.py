"""Where output goes: a file that people asked for, or stdout and stderr."""

import os
import stat
from contextlib import suppress


def is_one_output() -> bool:
    """Tell whether this process's stdout and stderr lead to one place, such as a terminal or a log."""
    try:
        return os.path.sameopenfile(1, 2)
    except OSError:
        return False


def write_output(path: str, text: str) -> None:
    """Write a file whole, by a rename: whoever reads it meanwhile sees what was there before. Raises OSError.

    What is no regular file (a pipe, a terminal) is written to as it is; where ``path`` is a symbolic link, what it
    leads to is replaced. The mode is that of the file before, else as the umask has it.
    """
    path = os.path.realpath(path)
    try:
        before = os.stat(path).st_mode
    except FileNotFoundError:
        before = None
    if before is not None and not stat.S_ISREG(before):
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(text)
        return
    temporary = f"{path}.{os.getpid()}.{os.urandom(4).hex()}"
    try:
        with open(temporary, "x", encoding="utf-8") as stream:
            stream.write(text)
            if before is not None:
                os.fchmod(stream.fileno(), stat.S_IMODE(before))
        os.rename(temporary, path)
    except OSError:
        with suppress(OSError):
            os.unlink(temporary)
        raise
