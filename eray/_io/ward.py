"""The supervisor's side of the guard: tell it what was started, and that all was ended."""

import contextlib
import subprocess
import sys
from collections.abc import Mapping, Sequence

from eray._io import guard, process


class Ward:
    """A guard over what this process starts. Without it a SIGKILL of this process would leave its children alive."""

    def __init__(self, directories: Sequence[str], env: Mapping[str, str]) -> None:
        """Start the guard, in the environment ``env``; it removes ``directories`` where this process cannot."""
        self._child = subprocess.Popen(
            [sys.executable, "-I", "-S", guard.__file__, *directories],
            env=dict(env),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
            text=True,
        )

    def watch(self, pid: int) -> None:
        """Put a session leader that was just started under the guard."""
        started = process.start_time(pid)
        if started is not None:
            self._tell(f"{pid} {started}")

    def dismiss(self) -> None:
        """End the guard: all is ended, and cleared away."""
        self._tell("done")
        assert self._child.stdin is not None
        with contextlib.suppress(OSError):
            self._child.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._child.wait(2.0)

    def _tell(self, line: str) -> None:
        assert self._child.stdin is not None
        with contextlib.suppress(OSError):  # the guard was killed: then nothing but it is missing
            self._child.stdin.write(line + "\n")
            self._child.stdin.flush()
