"""Time stamps on standard output, one a line: ``stamp NAME INDEX UNIX_SECONDS``. Imports nothing heavy."""

import os
import time


def stamp(name: str, index: int | str, at: float | None = None) -> None:
    """Write one stamp at once, whole."""
    os.write(1, f"stamp {name} {index} {time.time() if at is None else at:.4f}\n".encode())
