"""What a supervisor says to people."""

import logging
import sys
from collections import deque
from collections.abc import Sequence
from typing import Protocol

from eray._io import clock
from eray.errors import ClusterLostError

logger = logging.getLogger(__name__)


SAID: deque[tuple[float, str]] = deque(maxlen=100)
"""What this process said last, with the unix time."""


Told = tuple[str, int, int, Sequence[str]]
"""How far a start is: what is done, how many are there, of how many, and who is missing."""


class Reader(Protocol):
    """Who shows people the progress of a start, maybe by a line that is rewritten in place."""

    def tell(self, told: Told | None) -> None:
        """Take how far it is; None when nothing is awaited."""

    def make_room(self) -> None:
        """Clear the line: other output comes."""


_reader: Reader | None = None


def set_reader(reader: Reader | None) -> None:
    """Let somebody show progress; nobody does otherwise."""
    global _reader
    _reader = reader


def is_heard() -> bool:
    """Tell whether anybody shows progress."""
    return _reader is not None


def show_progress(told: Told | None) -> None:
    """Tell how far a start is."""
    if _reader is not None:
        _reader.tell(told)


def make_room() -> None:
    """Clear a line that is rewritten in place, before other output to the terminal."""
    if _reader is not None:
        _reader.make_room()


def keep(text: str) -> None:
    """Keep what need not be printed, for those who look later."""
    SAID.append((clock.unix(), text))


def say(text: str, *, printed: str | None = None) -> None:
    """Print one line for people on stderr: ``printed`` where the rest of it stands there already."""
    keep(text)
    make_room()
    print(f"eray: {text if printed is None else printed}", file=sys.stderr, flush=True)


def fault(node: str, exc: Exception) -> ClusterLostError:
    """Return the error that ends a cluster when eray's own code failed on a node; the traceback goes to the log."""
    logger.error("a fault of eray", exc_info=exc)
    return ClusterLostError(
        node, f"eray itself failed there ({type(exc).__name__}: {exc})", "report it, with the traceback above"
    )
