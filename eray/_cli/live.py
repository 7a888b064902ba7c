"""The progress of a start on stderr: one line that is rewritten on a terminal, a few lines in a log."""

import os
import shutil
import sys
from collections.abc import Mapping
from contextlib import suppress

from eray._cli.terminal import is_rich
from eray._io import clock
from eray._ray.notices import Told, set_reader
from eray._show.progress import QUIET_S, Progress


def show_start(environ: Mapping[str, str]) -> None:
    """Show from now on how the start of this process's cluster goes on."""
    set_reader(Live(environ))


class Live:
    """Writes to stderr what ``Progress`` makes of it."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._terminal = is_rich(environ, is_terminal=sys.stderr.isatty())
        quiet_s = 0.0 if self._terminal else QUIET_S
        self._progress = Progress(terminal=self._terminal, silent_until=clock.monotonic() + quiet_s)

    def tell(self, told: Told | None) -> None:
        """Show how far the start is."""
        now = clock.monotonic()
        if told is None:
            self.make_room()
        else:
            phase, ready, expected, missing = told
            width = shutil.get_terminal_size().columns
            self._write(self._progress.tell(phase, ready, expected, missing, now=now, width=width))

    def make_room(self) -> None:
        """Clear the line."""
        self._write(self._progress.done())

    def _write(self, text: str) -> None:
        if text:
            with suppress(OSError, ValueError):  # nobody reads on
                os.write(sys.stderr.fileno(), text.encode())
