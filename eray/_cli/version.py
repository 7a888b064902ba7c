"""``eray --version``: which eray, Ray, JAX and Python these are, by their metadata; none of them is imported."""

import platform

from eray._core.version import __version__
from eray._io.software import installed


def versions() -> str:
    """Return ``eray 0.1.0, Ray 2.60.0, JAX 0.10.2, Python 3.11.2``."""
    ray, jax = (installed(package) or "(not installed)" for package in ("ray", "jax"))
    return f"eray {__version__}, Ray {ray}, JAX {jax}, Python {platform.python_version()}"
