"""Compare this node's clock with that of a file server."""

import os
import tempfile

from eray._io import clock


def skew_s(directory: str) -> float | None:
    """Return how far the file server's clock is ahead, by the time that it gives to a new file; None where it cannot.

    The file is empty, has no name that stays, and is gone at once. A server's time between our two looks is no skew.
    """
    before = clock.unix()
    try:
        with tempfile.TemporaryFile(dir=directory) as file:
            made = os.fstat(file.fileno()).st_mtime
    except OSError:
        return None
    after = clock.unix()
    return made - before if made < before else max(made - after, 0.0)
