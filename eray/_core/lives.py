"""What to stop, to start again, and when to give up: the one rule of `eray run` and `launch`.

Events in, instructions out: ``Lives`` is frozen, each event returns the next one with what is to be done now. A world
lives in one generation at a time: its processes are all stopped before those of the next are started.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

NO_RESTART = (2, 3, 126, 127)
"""Exit codes of wrong usage, a bad environment and a program that is not there: the next generation ends likewise."""


@dataclass(frozen=True)
class Rule:
    """How often a world is started again, and on how few nodes.

    A generation in which all processes ran for ``healthy_s`` seconds gives the whole budget back.
    """

    max_restarts: int = 0
    min_nodes: int = 1
    healthy_s: float = 900.0


@dataclass(frozen=True)
class Stop:
    """End what is left of the failed generation on these nodes, and tell when each is done."""

    nodes: frozenset[int]
    cause: str
    code: int


@dataclass(frozen=True)
class Start:
    """Start the processes of a generation on these nodes."""

    generation: int
    nodes: frozenset[int]


@dataclass(frozen=True)
class Await:
    """Wait until more nodes are there; the caller has the deadline."""

    there: int
    needed: int


@dataclass(frozen=True)
class GiveUp:
    """The world is over: ``code`` is what the command ends with, unless a process's own code counts."""

    cause: str
    code: int


Instruction = Stop | Start | Await | GiveUp


class Doing(StrEnum):
    """What a world is in the middle of, as its launcher sees it."""

    RUNNING = "running"
    STOPPING = "stopping"
    WAITING = "waiting"
    OVER = "over"


@dataclass(frozen=True)
class Lives:
    """The generations of one world, as its launcher knows them.

    ``there`` are the ranks of the nodes that can take processes, ``taking`` those that have some of this generation,
    ``stopping`` those that still have some of a failed one. ``used`` counts restarts since the last healthy period.
    """

    rule: Rule
    there: frozenset[int] = frozenset()
    taking: frozenset[int] = frozenset()
    stopping: frozenset[int] = frozenset()
    generation: int = 1
    doing: Doing = Doing.RUNNING
    used: int = 0
    ran_since: float | None = None
    cause: str = ""
    code: int = 0

    @classmethod
    def first(cls, rule: Rule, nodes: Iterable[int]) -> "Lives":
        """Return the life that begins: generation 1 on all ``nodes``."""
        ranks = frozenset(nodes)
        return cls(rule, there=ranks, taking=ranks)

    def runs(self, generation: int, now: float) -> "Lives":
        """Note that all processes of a generation run: its healthy period begins."""
        if generation != self.generation or self.doing is not Doing.RUNNING or self.ran_since is not None:
            return self
        return replace(self, ran_since=now)

    def failed(self, generation: int, cause: str, code: int, now: float) -> tuple["Lives", tuple[Instruction, ...]]:
        """Take the first cause of a generation's failure; news of another generation, or a second cause, is none."""
        if generation != self.generation or self.doing is not Doing.RUNNING:
            return self, ()
        healthy = self.ran_since is not None and now - self.ran_since >= self.rule.healthy_s
        used = 0 if healthy else self.used
        if used >= self.rule.max_restarts or code in NO_RESTART:
            return replace(self, doing=Doing.OVER, cause=cause, code=code), (GiveUp(cause, code),)
        stopping = self.taking & self.there
        after = replace(
            self, doing=Doing.STOPPING, stopping=stopping, used=used + 1, ran_since=None, cause=cause, code=code
        )
        if not stopping:
            return after._next()
        return after, (Stop(stopping, cause, code),)

    def stopped(self, node: int) -> tuple["Lives", tuple[Instruction, ...]]:
        """Take that nothing is left of the failed generation on a node."""
        return self._without(node, self.there)

    def node_came(self, node: int) -> tuple["Lives", tuple[Instruction, ...]]:
        """Take that a node can take processes: it gets some when the world is started the next time."""
        after = replace(self, there=self.there | {node})
        return after._next() if self.doing is Doing.WAITING else (after, ())

    def node_lost(self, node: int) -> tuple["Lives", tuple[Instruction, ...]]:
        """Take that a node is gone with all that ran there. What failed by it is told by ``failed``, before this."""
        return self._without(node, self.there - {node})

    def overdue(self) -> tuple["Lives", tuple[Instruction, ...]]:
        """Give up waiting for nodes."""
        if self.doing is not Doing.WAITING:
            return self, ()
        found = f"{len(self.there)} of the {self.rule.min_nodes} nodes that it needs are left"
        cause = f"{self.cause}; the world is not started again: {found}"
        return replace(self, doing=Doing.OVER), (GiveUp(cause, self.code),)

    def _without(self, node: int, there: frozenset[int]) -> tuple["Lives", tuple[Instruction, ...]]:
        after = replace(self, stopping=self.stopping - {node}, there=there)
        if self.doing is Doing.STOPPING and not after.stopping:
            return after._next()
        return after, ()

    def _next(self) -> tuple["Lives", tuple[Instruction, ...]]:
        """Start the next generation, where there are nodes enough."""
        needed = max(self.rule.min_nodes, 1)
        if len(self.there) < needed:
            return replace(self, doing=Doing.WAITING), (Await(len(self.there), needed),)
        after = replace(self, doing=Doing.RUNNING, generation=self.generation + 1, taking=self.there)
        return after, (Start(after.generation, self.there),)
