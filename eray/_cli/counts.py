"""Numbers on the command line."""

import argparse


def whole_number(text: str, least: int = 1) -> int:
    """Read a whole number, ``least`` or more: a type for ``argparse``."""
    if not text.isdecimal() or int(text) < least:
        raise argparse.ArgumentTypeError(f"{text!r} must be a whole number, {least} or more")
    return int(text)
