"""What happens to a connection when Python ends, by itself, by an exception, or in a fork."""

import atexit
import os
import signal
import sys
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING

from eray._ray.notices import say
from eray.errors import ErayError

if TYPE_CHECKING:
    from eray._connection import Connection

Hook = Callable[[type[BaseException], BaseException, TracebackType | None], object]

_FORK_ENDS = (
    "eray: a fork of a connected process must end by os._exit(), as those of multiprocessing do: Python's own end "
    "would hang in Ray and JAX, or take the world down; it ends with code 1"
)


class ExitHooks:
    """Installed once a process: an uncaught error fails the world, an end without one leaves it."""

    def __init__(self, current: Callable[[], "Connection | None"]) -> None:
        self._current = current
        self._previous: Hook = sys.excepthook
        self._installed = self._forked_open = False
        self.served_by: str | None = None  # the purpose of its supervisor; None where all tracebacks are wanted

    def install(self) -> None:
        """Install the hooks; a second call does nothing."""
        if self._installed:
            return
        from eray._ray.attach import program_excepthook

        self._installed = True
        self._previous = program_excepthook()
        sys.excepthook = self._uncaught
        os.register_at_fork(after_in_child=self._forked)

    def leave_at_exit(self) -> None:
        """Close the connection at exit, before what JAX and Ray registered when they were loaded."""
        from eray._ray.attach import program_excepthook

        sys.excepthook = program_excepthook()
        atexit.register(self._leave)

    def _uncaught(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        connection = self._current()
        if not self._is_told(error, connection):
            self._previous(kind, error, trace)
        if connection is not None:
            from eray._connection import describe

            connection.fail(describe(error))
        if isinstance(error, ErayError):
            raise SystemExit(error.exit_code)  # Python takes the code from here
        if isinstance(error, KeyboardInterrupt):
            raise SystemExit(128 + signal.SIGINT)  # once ray is imported Python's own code for it is 1

    def _is_told(self, error: BaseException, connection: "Connection | None") -> bool:
        """Tell whether a traceback would only repeat, in each process, what its supervisors tell people of one fault.

        The same line as where they, and not the coordinator, bring the news (``Connection.on_failed``).
        """
        is_heard = isinstance(error, ErayError) and error.is_heard
        if not is_heard or self.served_by is None or is_interactive():
            return False
        if self.served_by != "run":
            who = "this process" if connection is None else f"process {connection.process_index}"
            say(f"{who} leaves: {error}")
        return True

    def _leave(self) -> None:
        connection = self._current()
        if connection is None:
            return
        if self._forked_open:
            # What follows in Python's end, Ray's and JAX's exit hooks and destructors, hangs in a fork, whose threads
            # are gone, or ends JAX's service under all processes of the world (seen with Ray 2.60, JAX 0.10.2).
            print(_FORK_ENDS, file=sys.stderr, flush=True)
            sys.stdout.flush()
            os._exit(1)
        unseen = getattr(sys, "last_value", None)  # of a program that replaced sys.excepthook after us
        if unseen is None or hasattr(sys, "ps1"):
            connection.close()
            return
        from eray._connection import describe

        connection.fail(describe(unseen))

    def _forked(self) -> None:
        connection = self._current()
        if connection is not None:
            self._forked_open = self._forked_open or connection.is_open
            connection.abandon()


def is_interactive() -> bool:
    """Tell whether a person sits at this process: a notebook's kernel or a prompt is not ended under them."""
    return hasattr(sys, "ps1") or "ipykernel" in sys.modules
