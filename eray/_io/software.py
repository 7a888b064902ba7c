"""Tell what is installed, without importing it."""

from importlib.metadata import PackageNotFoundError, version


def installed(package: str) -> str | None:
    """Return the version of an installed package, None where there is none."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None
