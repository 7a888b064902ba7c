"""Read what the kernel shows of itself; what is not there, or closed to this user, is empty."""

import os


def names_in(directory: str) -> list[str]:
    """Return the names in a directory."""
    try:
        return os.listdir(directory)
    except OSError:
        return []


def text_of(path: str) -> str:
    """Return what stands in a file."""
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.read()
    except OSError:
        return ""
