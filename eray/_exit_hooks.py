"""What happens to a connection when Python ends, by itself, by an exception, or in a fork."""

import atexit
import os
import sys
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING

from eray.errors import ErayError

if TYPE_CHECKING:
    from eray._connection import Connection

Hook = Callable[[type[BaseException], BaseException, TracebackType | None], object]


class ExitHooks:
    """Installed once a process: an uncaught error fails the world, an end without one leaves it."""

    def __init__(self, current: Callable[[], "Connection | None"]) -> None:
        self._current = current
        self._previous: Hook = sys.excepthook
        self._installed = False

    def install(self) -> None:
        """Install the hooks; a second call does nothing."""
        if self._installed:
            return
        self._installed = True
        self._previous = sys.excepthook
        sys.excepthook = self._uncaught
        os.register_at_fork(after_in_child=self._forked)

    def leave_at_exit(self) -> None:
        """Close the connection at exit, before what JAX and Ray registered when they were loaded."""
        atexit.register(self._leave)

    def _uncaught(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        self._previous(kind, error, trace)
        connection = self._current()
        if connection is not None:
            from eray._connection import describe

            connection.fail(describe(error))
        if isinstance(error, ErayError):
            raise SystemExit(error.exit_code)  # Python takes the code from here

    def _leave(self) -> None:
        connection = self._current()
        if connection is not None:
            connection.close()

    def _forked(self) -> None:
        connection = self._current()
        if connection is not None:
            connection.abandon()
