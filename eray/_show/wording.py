"""Numbers, times and lists as people read them."""

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, tzinfo
from math import isfinite

from eray._core.counted import counted as counted
from eray._core.timing import elapsed as elapsed
from eray._core.timing import lasted as lasted
from eray._slurm.hostlist import fold_hostlist
from eray.errors import SlurmFormatError

UNREADABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, those that change the direction of text, and halves of surrogate pairs."""


def clean(text: str) -> str:
    """Return the text with every character that no page can show, or that would hide others, as U+FFFD."""
    return UNREADABLE.sub("\ufffd", text)


def duration(seconds: float) -> str:
    """Return a length of time with two units at most: ``0.25 s``, ``12.5 s``, ``3 min 5 s``, ``2 d 4 h``.

    >>> duration(7509)
    '2 h 5 min'
    """
    if not isfinite(seconds):
        return "an unknown time"
    if seconds < 60:
        return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.1f} s"
    return elapsed(round(seconds))


def offset(at: float, began_at: float) -> str:
    """Return a time as seconds after the cluster began: ``+6.00 s``."""
    return f"{'+' if at >= began_at else '-'}{duration(abs(at - began_at))}"


def moment(at: float, zone: tzinfo = UTC) -> str:
    """Return a unix time as ``2026-01-31 12:00:00 UTC``, or as the number where no calendar has it."""
    try:
        return datetime.fromtimestamp(at, zone).strftime("%Y-%m-%d %H:%M:%S %Z")
    except (OverflowError, ValueError, OSError):
        return f"unix time {at:g}"


def folded(numbers: Iterable[int], most: int = 12) -> str:
    """Return numbers as ranges, ``most`` of them: ``0–3, 7``.

    >>> folded([3, 1, 2, 7, 0])
    '0–3, 7'
    """
    runs: list[tuple[int, int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    words = [str(first) if first == last else f"{first}–{last}" for first, last in runs[:most]]
    return ", ".join(words) + (f" and {len(runs) - most} more ranges" if len(runs) > most else "")


def folded_names(names: Sequence[str]) -> str:
    """Return names of nodes as a host list, or plainly where one is no name that Slurm could give."""
    try:
        return fold_hostlist(names)
    except SlurmFormatError:
        return ", ".join(names)


def table(rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> list[str]:
    """Return rows with their cells in columns, those of the columns ``right`` at the right edge."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = zip(row, widths, range(len(row)), strict=True)
        lines.append("  ".join(c.rjust(width) if n in right else c.ljust(width) for c, width, n in cells).rstrip())
    return lines
