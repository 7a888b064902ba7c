"""What stands between the public functions and their callers: errors without eray's own frames, and one warning."""

import os
from collections.abc import Callable
from functools import cache, wraps
from typing import ParamSpec, TypeVar

from eray._core.outcome import ProgramFailure
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
    """Let an error reach the caller with the caller's frames only; ERAY_LOG=debug keeps all, and what led to it.

    The message of an ErayError says what was found and what to do. A failed world keeps its cause: how Ray saw the
    process end. What a program raised elsewhere has its own frames in its text.
    """

    @wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> T:
        _warn()
        try:
            return function(*args, **kwargs)
        except ErayError as exc:
            if is_debug(os.environ):
                raise
            error: BaseException = exc
            cause = exc.__cause__ if isinstance(exc, WorldFailedError) else None
        except ProgramFailure as exc:
            error, cause = exc.error, exc.error.__cause__
            if is_debug(os.environ):
                raise error from cause
        raise error.with_traceback(None) from cause  # ERAY_LOG=debug shows from where

    return called
