"""Tell what is installed, without importing it."""

from importlib.metadata import PackageNotFoundError, version

SOURCE = "source"


def installed(package: str) -> str | None:
    """Return the version of an installed package, None where there is none."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def eray_version() -> str:
    """Return eray's version; a tree on the path that was never installed has none."""
    return installed("eray") or SOURCE
