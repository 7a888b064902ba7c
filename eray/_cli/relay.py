"""What a launcher does with signals: it passes them on to its step, by srun's standard input (``_ray/signals``)."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Collection
from types import TracebackType
from typing import Any, Self

from eray._io.signals import ENDING, THE_USERS


class Relay:
    """Takes the launcher's signals while it is entered; those that come before there is a step reach that later.

    A second signal of those that end ends the step at once. The first SIGTERM does not count where it is a warning.
    """

    def __init__(self, warnings: Collection[str]) -> None:
        self._spared = {int(number) for number in ENDING if number.name.removeprefix("SIG") in warnings}
        self._endings = 0
        self._child: subprocess.Popen[bytes] | None = None
        self._early: list[int] = []
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        self._before = {number: signal.signal(number, self._take) for number in (*ENDING, *THE_USERS)}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def to(self, child: "subprocess.Popen[bytes]") -> None:
        """Pass on to this srun, whose standard input is a pipe."""
        self._child = child
        for number in self._early:
            self._pass_on(child, number)

    def _take(self, number: int, _: object) -> None:
        if self._child is None:
            self._early.append(number)
        else:
            self._pass_on(self._child, number)

    def _pass_on(self, child: "subprocess.Popen[bytes]", number: int) -> None:
        assert child.stdin is not None
        if number in self._spared:
            self._spared.discard(number)
        elif number in ENDING:
            self._endings += 1
        if self._endings > 1:
            child.terminate()
            return
        with contextlib.suppress(OSError):  # srun has ended meanwhile
            os.write(child.stdin.fileno(), b"%d\n" % number)
