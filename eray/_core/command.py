"""A process to be run, as data: planned, printed and run it is the same object."""

import shlex
from dataclasses import dataclass


@dataclass(frozen=True)
class Command:
    """What to run: the arguments, and the whole environment."""

    argv: tuple[str, ...]
    env: dict[str, str]

    def __str__(self) -> str:
        return shlex.join(self.argv)
