"""Tell what a terminal can do."""

from collections.abc import Mapping


def is_rich(environ: Mapping[str, str], *, is_terminal: bool) -> bool:
    """Tell whether colours and rewriting are wanted: on a terminal that is not dumb, without NO_COLOR."""
    return is_terminal and not environ.get("NO_COLOR") and environ.get("TERM", "dumb") not in ("", "dumb", "unknown")
