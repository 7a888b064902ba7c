"""Lengths of time and lists of names in few words, for one line of a terminal."""

from collections.abc import Sequence
from dataclasses import asdict
from itertools import pairwise
from math import isfinite

from eray._core.missing import name_missing
from eray._show.waits import Missing
from eray._show.wording import clean, folded_names

UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
NAMED, NODES = 32, 8
LENGTH = 120


def elapsed(seconds: float) -> str:
    """Return whole seconds in two units at most: ``3 s``, ``2 min 10 s``, ``1 h 5 min``.

    >>> elapsed(130), elapsed(3900), elapsed(60)
    ('2 min 10 s', '1 h 5 min', '1 min')
    """
    if not isfinite(seconds):
        return "an unknown time"
    rest = int(max(seconds, 0.0))
    for (size, unit), (below, smaller) in pairwise(UNITS):
        if rest >= size:
            more = rest % size // below
            return f"{rest // size} {unit}" + (f" {more} {smaller}" if more else "")
    return f"{rest} s"


def one_line(text: str) -> str:
    """Return a text without line breaks and control characters."""
    return " ".join(clean(text).split())


def hosts(names: Sequence[str], length: int = LENGTH) -> str:
    """Return names as a host list of about ``length`` characters; what has no room is counted.

    >>> hosts(["n1", "n2", "n3"])
    'n[1-3]'
    """
    names = [one_line(name) for name in names]
    text, shown = folded_names(names), len(names)
    while len(text) > length and shown > 1:
        shown = max(min(shown * length // len(text), shown - 1), 1)
        text = f"{folded_names(names[:shown])} and {len(names) - shown} more"
    return text


def who(missing: Sequence[Missing]) -> str:
    """Name processes with their nodes: each node's where they are few, else one host list."""
    nodes = list(dict.fromkeys(each.node for each in missing if each.node))
    if len(missing) <= NAMED and len(nodes) <= NODES:
        return name_missing([asdict(each) for each in missing])
    indexes = hosts([str(each.process_index) for each in missing]).replace("[", "").replace("]", "").replace(",", ", ")
    return f"{len(missing):,} processes: {indexes}" + (f" on {hosts(nodes)}" if nodes else "")


def the_first(missing: Sequence[Missing], count: int = 4) -> str:
    """Name the first processes with their nodes, and count the others."""
    return name_missing([asdict(each) for each in missing[:count]], len(missing))
