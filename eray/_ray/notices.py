"""What a supervisor says to people."""

import logging
import sys
from collections import deque

from eray._io import clock
from eray.errors import ClusterLostError

logger = logging.getLogger(__name__)


SAID: deque[tuple[float, str]] = deque(maxlen=100)
"""What this process said last, with the unix time."""


def say(text: str) -> None:
    """Print one line for people on stderr."""
    SAID.append((clock.unix(), text))
    print(f"eray: {text}", file=sys.stderr, flush=True)


def fault(node: str, exc: Exception) -> ClusterLostError:
    """Return the error that ends a cluster when eray's own code failed on a node; the traceback goes to the log."""
    logger.error("a fault of eray", exc_info=exc)
    return ClusterLostError(
        node, f"eray itself failed there ({type(exc).__name__}: {exc})", "report it, with the traceback above"
    )
