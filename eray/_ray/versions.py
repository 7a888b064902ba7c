"""The versions that nodes compare before any Ray starts, read without importing what they are of."""

import platform
from importlib.metadata import PackageNotFoundError, version


def python_version() -> str:
    """Return Python's version with its patch level: Ray refuses nodes that differ in it (FACTS R19)."""
    return platform.python_version()


def ray_version() -> str:
    """Return Ray's version."""
    return version("ray")


def eray_version() -> str:
    """Return eray's version; a source tree on the path that was never installed has none."""
    try:
        return version("eray")
    except PackageNotFoundError:
        return "source"
