"""What stands between the public functions and their callers: an error of eray's, without eray's own frames."""

import os
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from eray._io.log_lines import is_debug
from eray.errors import ErayError, WorldFailedError

P = ParamSpec("P")
T = TypeVar("T")


def door(function: Callable[P, T]) -> Callable[P, T]:
    """Let an ErayError reach the caller with the caller's frames only; ERAY_LOG=debug keeps all, and what led to it.

    The message says what was found and what to do. A failed world keeps its cause: how Ray saw the process end.
    """

    @wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except ErayError as exc:
            if is_debug(os.environ):
                raise
            error, cause = exc.with_traceback(None), exc.__cause__ if isinstance(exc, WorldFailedError) else None
            raise error from cause  # ERAY_LOG=debug shows from where

    return called
