"""Run a command in a session of its own and keep what it printed."""

import os
import shlex
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Result:
    """What a command did. ``returncode`` is negative where a signal ended the command itself."""

    command: tuple[str, ...]
    returncode: int
    stdout: str
    stderr: str
    wall_s: float

    @property
    def output(self) -> str:
        return _joined(self.stdout, self.stderr)

    def check(self) -> "Result":
        """Return this result, or raise AssertionError with all that was printed unless the code is 0."""
        if self.returncode:
            raise AssertionError(f"{shlex.join(self.command)} ended with {self.returncode}:\n{self.output}")
        return self


class Running:
    """A command that runs in a session of its own; its output goes to files and can be read meanwhile."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], cwd: Path) -> None:
        self.command, self.started = tuple(argv), time.monotonic()
        self._files = [tempfile.TemporaryFile() for _ in range(2)]  # noqa: SIM115
        self.process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=self._files[0],
            stderr=self._files[1],
            env=env,
            cwd=cwd,
            start_new_session=True,
        )

    @property
    def output(self) -> str:
        return _joined(*self._read())

    def signal(self, number: int) -> None:
        """Send a signal to the command, as `kill` would: not to its children."""
        self.process.send_signal(number)

    def interrupt(self) -> None:
        """Send SIGINT to the command and all it runs on this host, as a terminal does on Ctrl-C."""
        os.killpg(self.process.pid, signal.SIGINT)

    def wait(self, timeout_s: float = 60) -> Result:
        """Wait for the end; a command that outlives ``timeout_s`` is killed and fails the test."""
        try:
            self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(
                f"{shlex.join(self.command)} still ran after {timeout_s} s, having printed:\n{self.output}"
            ) from None
        return Result(self.command, self.process.returncode, *self._read(), time.monotonic() - self.started)

    def kill(self) -> None:
        """End the command and what it runs on this host: TERM, so that srun ends its step, then KILL."""
        for number, patience_s in ((signal.SIGTERM, 3), (signal.SIGKILL, 10)):
            try:
                os.killpg(self.process.pid, number)
                self.process.wait(patience_s)
            except subprocess.TimeoutExpired:
                continue
            except ProcessLookupError:
                break

    def _read(self) -> tuple[str, str]:
        texts = []
        for file in self._files:
            size = os.fstat(file.fileno()).st_size
            texts.append(os.pread(file.fileno(), size, 0).decode(errors="replace"))
        return texts[0], texts[1]


def _joined(stdout: str, stderr: str) -> str:
    """Return both, stderr on a line of its own: an unbuffered program writes the end of a line by itself."""
    return stdout + ("\n" if stdout and not stdout.endswith("\n") else "") + stderr
