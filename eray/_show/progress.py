"""Tell how a start goes on: one line that is rewritten on a terminal, lines that say what changed in a log."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from eray._core.timing import REPEAT_S
from eray._show.wording import lasted
from eray._show.words import hosts, one_line

CHANGE_S = 2.0
"""How soon after a line a log gets the next one where something changed; where nothing did, after ``REPEAT_S``."""
QUIET_S = 10.0
"""A log says nothing of a start that is over sooner."""
CLEAR = "\r\x1b[K"
LEAST = 10
"""Characters for the names of those who are missing below which a terminal shows their number only."""


@dataclass(frozen=True)
class _Told:
    phase: str
    ready: int
    expected: int
    missing: tuple[str, ...]


class Progress:
    """What ``run``, ``up``, ``launch`` and ``connect`` say while they start.

    Reads no clock and knows no terminal: it is told both, and returns what to write.

    >>> progress = Progress(terminal=False)
    >>> progress.tell("nodes report", 1, 3, ["node02", "node03"], now=5.0)
    'eray: nodes report: 1 of 3, missing node[02-03]\\n'
    >>> progress.tell("nodes report", 1, 3, ["node02", "node03"], now=6.0)
    ''
    """

    def __init__(self, *, terminal: bool, silent_until: float = -inf) -> None:
        """``terminal`` says that what is written can be rewritten: a terminal that is not dumb."""
        self._terminal, self._silent_until = terminal, silent_until
        self._told: _Told | None = None
        self._began, self._said_at = 0.0, 0.0
        self._phase: str | None = None
        self._line = ""

    def tell(
        self,
        phase: str,
        ready: int,
        expected: int,
        missing: Sequence[str] = (),
        *,
        now: float,
        width: int = 80,
    ) -> str:
        """Take how far a phase is, and return what to write, ``""`` for nothing.

        Args:
            phase: what is done, such as ``nodes report`` or ``processes join``.
            ready: how many are there, of the ``expected``.
            missing: names of nodes that are awaited, or words for the processes that are; any part of them.
            now: seconds on a clock that only goes forward.
            width: columns of the terminal; a log has no end of line.
        """
        told = _Told(one_line(phase), ready, expected, tuple(missing))
        if told.phase != self._phase:
            self._phase, self._began = told.phase, now
        for_s = now - self._began
        if now < self._silent_until:
            return ""
        if self._terminal:
            return self._rewritten(_fitting(told, for_s, max(width - 1, 1)))  # the last column would wrap
        if not self._is_due(told, now):
            return ""
        self._told, self._said_at = told, now
        return _text(told, for_s, hosts(told.missing)) + "\n"

    def done(self) -> str:
        """Return what clears the line: before other output, which the next ``tell`` writes it below, and at the end."""
        was, self._line = self._line, ""
        return CLEAR if was else ""

    def _rewritten(self, line: str) -> str:
        if line == self._line:
            return ""
        self._line = line
        return f"{CLEAR}{line}"

    def _is_due(self, told: _Told, now: float) -> bool:
        before, for_s = self._told, now - self._said_at
        if before is None or before.phase != told.phase:
            return True
        if before == told:
            return for_s >= REPEAT_S
        return for_s >= CHANGE_S or told.ready >= told.expected  # a thousand nodes are no thousand lines


def _text(told: _Told, for_s: float, missing: str) -> str:
    named = f", missing {missing}" if missing else ""
    return f"eray: {told.phase}: {told.ready:,} of {told.expected:,}{named}{lasted(', ', for_s)}"


def _fitting(told: _Told, for_s: float, width: int) -> str:
    """Return the line, with as many names as have room."""
    missing = hosts(told.missing)
    text = _text(told, for_s, missing)
    if len(text) > width and missing:
        room = len(missing) - (len(text) - width) - len(f" and {len(told.missing):,} more")
        text = _text(told, for_s, hosts(told.missing, room) if room >= LEAST else "")
    count = f"{told.ready:,} of {told.expected:,}"
    shorter = (text, _text(told, for_s, ""), _text(told, 0.0, ""), f"{told.phase}: {count}", count)
    return next((each for each in shorter if len(each) <= width), count[:width])
