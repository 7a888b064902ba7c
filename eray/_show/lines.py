"""Lay out lines of text for a pipe, a narrow window or rich: each with one style, and an indent where it goes on."""

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

GAP = "  "
NAMES = 44
"""Characters of a table's first column from which on there is no table."""
LEAST = 20
LABEL = 12
NARROW = 60
JOINTS = "/,-_.:="
"""After these a word may be broken that is longer than a line."""


class _Wrapper(textwrap.TextWrapper):
    """Breaks at spaces, but none before a unit (``54 s``), and after the commas of a host list."""

    wordsep_simple_re = re.compile(r"((?<![0-9])\s+|\s+(?!(?:s|min|h|d)\b)|(?<=,)(?=\S))")

    def _handle_long_word(self, reversed_chunks: list[str], cur_line: list[str], cur_len: int, width: int) -> None:
        """Break a word that no line has room for, such as a path, where it has a joint."""
        word, room = reversed_chunks[-1], max(width - cur_len, 1)
        joint = max(word.rfind(mark, 0, room) for mark in JOINTS) + 1
        if not joint and any(part.strip() for part in cur_line):
            return  # it begins in a line of its own
        cur_line.append(word[: joint or room])
        reversed_chunks[-1] = word[joint or room :]


@dataclass(frozen=True)
class Line:
    """One line: ``hang`` is the indent of what does not fit, ``minor`` lines are left out first in a low window.

    ``style`` is rich's: ``bold``, ``red``, ``yellow``, ``green``, ``dim``.
    """

    text: str
    style: str = ""
    hang: int = 2
    minor: bool = False

    def wrapped(self, width: int | None) -> list[str]:
        """Return the line in parts of at most ``width`` characters; None is without end."""
        if width is None or len(self.text) <= width:
            return [self.text]
        hang = self.hang if width >= NARROW else min(self.hang, 4)
        return _Wrapper(max(width, LEAST), subsequent_indent=" " * hang, break_on_hyphens=False).wrap(self.text)


def labelled(label: str, text: str, style: str = "", indent: int = 2, *, minor: bool = False) -> Line:
    """Return a line with a label in a column of its own."""
    lead = " " * indent
    return Line(f"{lead}{label:<{LABEL}}{text}", style, indent + LABEL, minor)


def table(head: Sequence[str], rows: Sequence[tuple[Sequence[str], str]], width: int | None) -> Iterator[Line]:
    """Yield rows, each with its style, below a head; columns without a value are left out.

    Where that is too wide, each row is a sentence that names its columns.
    """
    used = [at for at in range(len(head)) if any(cells[at] for cells, _ in rows)]
    widths = {at: max(len(head[at]), *(len(cells[at]) for cells, _ in rows)) for at in used}
    total = sum(widths.values()) + len(GAP) * len(used)
    if (width is None or total <= width) and widths[used[0]] <= NAMES:
        yield Line(_row(head, widths), "dim", minor=True)
        for cells, style in rows:
            yield Line(_row([cell or "-" for cell in cells], widths), style, minor=style in ("", "green"))
        return
    for cells, style in rows:
        named = (_cell(head[at], cells[at]) for at in used[1:] if cells[at])
        yield Line(f"{GAP}{cells[used[0]]}: {', '.join(named)}", style, 4, minor=style in ("", "green"))


def _row(cells: Sequence[str], widths: dict[int, int]) -> str:
    return GAP + GAP.join(f"{cells[at]:<{width}}" for at, width in widths.items()).rstrip()


def _cell(name: str, value: str) -> str:
    return value if name in ("state", "at the end", "devices", "memory") else f"{name} {value}"


def plain(lines: Iterable[Line], width: int | None) -> str:
    """Return the lines as text without a style."""
    return "\n".join(part for line in lines for part in line.wrapped(width))


def shortened(lines: Sequence[Line], width: int, height: int) -> list[Line]:
    """Return the lines without as many minor ones, the last first, as have no room in a window; a line says so."""
    heights = [len(line.wrapped(width)) for line in lines]
    left_out: set[int] = set()
    for at in range(len(lines) - 1, -1, -1):
        if sum(heights) - sum(heights[out] for out in left_out) + bool(left_out) <= height:
            break
        if lines[at].minor:
            left_out.add(at)
    if not left_out:
        return list(lines)
    kept = [line for at, line in enumerate(lines) if at not in left_out]
    at = sum(place < min(left_out) for place in range(len(lines)) if place not in left_out)
    return [*kept[:at], Line(f"  (in a higher window: {len(left_out)} more)", "dim"), *kept[at:]]


def styled(lines: Sequence[Line], width: int, height: int | None) -> Iterator[Any]:
    """Yield the lines as texts of rich's, at most ``height`` where minor ones can be left out."""
    from rich.text import Text

    for line in lines if height is None else shortened(lines, width, height):
        for part in line.wrapped(width):
            yield Text(part, style=line.style, no_wrap=True, overflow="ignore")
