"""What stands between the public functions and their callers: errors without eray's own frames, and one warning."""

import os
from collections.abc import Callable
from functools import cache, wraps
from typing import ParamSpec, TypeVar

from eray._io.log_lines import is_debug
from eray._ray.notices import say
from eray._slurm.membership import misspellings
from eray.errors import ErayError, WorldFailedError

P = ParamSpec("P")
T = TypeVar("T")


@cache
def _warn() -> None:
    """Say once which variables are misspelled."""
    for line in misspellings(os.environ):
        say(line)


def door(function: Callable[P, T]) -> Callable[P, T]:
    """Let an ErayError reach the caller with the caller's frames only; ERAY_LOG=debug keeps all, and what led to it.

    The message says what was found and what to do. A failed world keeps its cause: how Ray saw the process end.
    """

    @wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> T:
        _warn()
        try:
            return function(*args, **kwargs)
        except ErayError as exc:
            if is_debug(os.environ):
                raise
            error, cause = exc.with_traceback(None), exc.__cause__ if isinstance(exc, WorldFailedError) else None
            raise error from cause  # ERAY_LOG=debug shows from where

    return called
