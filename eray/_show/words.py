"""Lists of names in few words, for one line of a terminal."""

from collections.abc import Sequence
from dataclasses import asdict

from eray._core.missing import name_missing
from eray._show.waits import Missing
from eray._show.wording import clean, folded_names

NAMED, NODES = 32, 8
LENGTH = 120
PLAIN = "no process called eray.connect(): a plain program need not"
"""What is said of a cluster whose program was one."""


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
