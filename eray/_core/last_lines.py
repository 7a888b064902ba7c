"""Which of the last lines of a process its reader needs."""

import re
from collections.abc import Sequence

EXPECTED = "Using experimental recoverable task feature"
"""In a line that JAX prints in each world (docs/decisions/0003), which explains no failure."""
_FRAME = re.compile(r'\s+File ".*", line \d+, in ')


def telling_lines(lines: Sequence[str], said: str = "") -> list[str]:
    """Return the lines to quote of a process that failed, where ``said`` is what has been told of the failure.

    Of a traceback it is the exception that ends it, with what follows; nothing where ``said`` tells that already.
    Without a traceback, or with one whose end is not there, it is all of them.
    """
    lines = [line for line in lines if EXPECTED not in line]
    frames = [number for number, line in enumerate(lines) if _FRAME.match(line)]
    ends = [number for number in range(frames[-1], len(lines)) if lines[number][:1].strip()] if frames else []
    if not ends:
        return lines
    quoted = lines[ends[0] :]
    kind, _, message = "\n".join(quoted).partition(": ")
    is_told = f"{kind.rpartition('.')[2]}: {message}" in said or f": {said}".endswith(f": {message}")
    return [] if is_told and message else quoted
