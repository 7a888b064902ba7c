"""Slurm's host lists: ``gpu[01-03,07],login1`` is five names, in that order."""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import product
from math import prod
from typing import NamedTuple

from eray.errors import SlurmFormatError

MAX_RANGE = 65_536  # Slurm's MAX_SLURM_NODES: srun and scontrol refuse a wider range
MAX_NAMES = 1_048_576

_SEPARATORS = " ,\t\n\r"  # what Slurm separates at, outside brackets
_ELEMENT = re.compile(r"(?:[^ ,\t\n\r\[\]]++|\[[^\[\]]*+\])++")
_BRACKET = re.compile(r"\[([^\]]*)\]")
_LITERAL = re.compile(r"[A-Za-z0-9._-]*")
_RANGE = re.compile(r"([0-9]{1,18})(?:-([0-9]{1,18}))?")
_LAST_NUMBER = re.compile(r"(.*?)([0-9]{1,18})([^0-9]*)", re.DOTALL)


def expand_hostlist(text: str, variable: str = "host list") -> list[str]:
    """Expand a Slurm host list to its names, with order and duplicates kept.

    Several brackets in one name are a product in which the last runs fastest, as ``scontrol show hostnames`` prints
    them; text after a bracket is Slurm 23.11's syntax. Blank text is the empty list.

    Args:
        text: names separated by commas, blanks or newlines.
        variable: where the text comes from, for the error.

    Raises:
        SlurmFormatError: the text is malformed, a range is wider than Slurm's 65536, or there are more than 1048576
            names in all; the faulty part is named.
    """
    parts: list[str | _Product] = []
    count = 0
    for element in _elements(text, variable):
        if "[" in element:
            parsed = _parse_product(element, text, variable)
            parts.append(parsed)
            count += parsed.size
        else:
            _check_literal(element, element, text, variable)
            parts.append(element)
            count += 1
        if count > MAX_NAMES:  # before a name is made
            raise _error(variable, text, f"more than {MAX_NAMES} names, at {element[:80]!r}")
    names: list[str] = []
    for part in parts:
        if isinstance(part, str):
            names.append(part)
        else:
            names.extend(part.names())
    return names


def fold_hostlist(names: Sequence[str]) -> str:
    """Fold names to a host list that :func:`expand_hostlist` expands to the same names in the same order.

    Neighbours that differ only in their last number share a bracket: ``["n1", "n2", "m01-ib"]`` is
    ``"n[1-2],m01-ib"``.

    Raises:
        SlurmFormatError: a name has a character that no node name can have.
    """
    parts: list[str] = []
    group: tuple[str, str] | None = None
    numbers: list[str] = []
    for name in names:
        if not name or not _LITERAL.fullmatch(name):
            raise _error("host name", name, "only letters, digits, '.', '_' and '-' can stand in a node name")
        match = _LAST_NUMBER.fullmatch(name)
        key = (match[1], match[3]) if match else None
        if key is None or key != group:
            parts.extend(_folded(group, numbers))
            group, numbers = key, []
        if match:
            numbers.append(match[2])
        else:
            parts.append(name)
    parts.extend(_folded(group, numbers))
    return ",".join(parts)


def _elements(text: str, variable: str) -> Iterator[str]:
    if text.strip().lower() == "none assigned":
        raise _error(variable, text, "the job has no nodes yet (this is squeue's text for a pending job)")
    position, end = 0, len(text)
    while position < end:
        if text[position] in _SEPARATORS:
            position += 1
            continue
        match = _ELEMENT.match(text, position)
        stop = match.end() if match else position
        if stop < end and text[stop] not in _SEPARATORS:
            faulty = re.split(r"[ \t\n\r]", text[position : position + 60])[0]
            raise _error(variable, text, f"unbalanced or nested bracket in {faulty!r}")
        assert match is not None  # an element starts at every character that is neither separator nor bracket
        yield match[0]
        position = stop


class _Product(NamedTuple):
    literals: list[str]  # one more than there are brackets
    brackets: list[list[tuple[int, int, int]]]  # lowest, highest, width
    size: int

    def names(self) -> list[str]:
        *others, last = self.brackets
        *literals, before, after = self.literals
        choices: list[Iterable[str]] = []
        for literal, ranges in zip(literals, others, strict=True):
            choices += [literal], _numbered([""], ranges)
        names = _numbered(map("".join, product(*choices, [before])), last)
        return [name + after for name in names] if after else names


def _numbered(prefixes: Iterable[str], ranges: Sequence[tuple[int, int, int]]) -> list[str]:
    """Return every prefix with every number. A name is one addition of two texts: a list may have 100,000 names."""
    runs = [run for each in ranges for run in _runs(*each)]
    return [first + tail for prefix in prefixes for head, tails in runs for first in (prefix + head,) for tail in tails]


def _runs(low: int, high: int, width: int) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield the numbers of a range as a common head and the tails after it, of three digits at most."""
    plain, padded = _tails()
    while low <= high:
        digits = len(str(low))
        head, tail = divmod(low, 1000)
        last = min(high, low - tail + 999, 10**digits - 1)
        zeros = "0" * (width - digits)
        if digits <= 3:
            yield zeros, plain[low : last + 1]
        else:
            yield f"{zeros}{head}", padded[tail : tail + last - low + 1]
        low = last + 1


@cache
def _tails() -> tuple[list[str], list[str]]:
    return [str(number) for number in range(1000)], [f"{number:03d}" for number in range(1000)]


def _parse_product(element: str, text: str, variable: str) -> _Product:
    pieces = _BRACKET.split(element)  # literal, bracket, literal, bracket, ..., literal
    for literal in pieces[::2]:
        _check_literal(literal, element, text, variable)
    brackets = [_ranges(bracket, element, text, variable) for bracket in pieces[1::2]]
    size = prod(sum([high - low + 1 for low, high, _ in ranges]) for ranges in brackets)
    return _Product(pieces[::2], brackets, size)


def _ranges(bracket: str, element: str, text: str, variable: str) -> list[tuple[int, int, int]]:
    ranges = []
    for part in bracket.split(","):
        match = _RANGE.fullmatch(part)
        if not match:
            raise _error(variable, text, f"{part[:40]!r} in {element[:80]!r} is neither a number nor a range")
        low, high = int(match[1]), int(match[2] or match[1])
        if high < low:
            raise _error(variable, text, f"the range {part!r} in {element[:80]!r} runs backwards")
        if high - low >= MAX_RANGE:
            raise _error(variable, text, f"the range {part!r} in {element[:80]!r} is wider than {MAX_RANGE}")
        ranges.append((low, high, len(match[1])))
    return ranges


def _check_literal(literal: str, element: str, text: str, variable: str) -> None:
    match = _LITERAL.match(literal)
    if match and match.end() == len(literal):
        return
    faulty = literal[match.end() if match else 0]
    hint = " (a shell variable that was not expanded)" if faulty == "$" else ""
    raise _error(variable, text, f"{faulty!r} in {element[:80]!r} cannot stand in a node name{hint}")


def _error(variable: str, text: str, reason: str) -> SlurmFormatError:
    return SlurmFormatError(variable, text if len(text) <= 200 else text[:200] + "...", reason)


def _folded(group: tuple[str, str] | None, numbers: list[str]) -> Iterator[str]:
    if group is None or not numbers:
        return
    runs: list[tuple[str, str, int]] = []  # first, last, length
    for number in numbers:
        if runs:
            first, last, length = runs[-1]
            if length < MAX_RANGE and number == f"{int(last) + 1:0{len(first)}d}":
                runs[-1] = (first, number, length + 1)
                continue
        runs.append((number, number, 1))
    inside = ",".join(first if length == 1 else f"{first}-{last}" for first, last, length in runs)
    yield f"{group[0]}[{inside}]{group[1]}" if len(numbers) > 1 else f"{group[0]}{inside}{group[1]}"
