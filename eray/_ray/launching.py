"""The generations of one launched world, by the same rule as `eray run`: placed, run, and started again."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from eray._core.counted import counted
from eray._core.gang_layout import NAMED_NODES, Ask, Room, Seat, ask_again, eligible, seats
from eray._core.lives import Await, GiveUp, Instruction, Lives, Rule, Start
from eray._core.timing import Backoff, Deadline
from eray._io import clock
from eray._io.log_lines import log_change
from eray._ray.cluster_client import reminding
from eray._ray.gang import Gang
from eray._ray.gang_failure import GangFailure
from eray._ray.placing import place
from eray._ray.program import Program
from eray._ray.rooms import read_rooms
from eray.errors import PlacementError, UsageError

if TYPE_CHECKING:
    from eray._ray.client import CoordinatorClient

logger = logging.getLogger(__name__)


class Launching:
    """One call of ``launch()``."""

    def __init__(
        self,
        client: "CoordinatorClient",
        world: str,
        ask: Ask,
        program: Program,
        rule: Rule,
        *,
        timeout_s: float,
        nodes_s: float,
        say: Callable[[str], None],
    ) -> None:
        """``timeout_s`` is for placing, starting and joining, ``nodes_s`` for the nodes that a restart needs."""
        self._client, self._world, self._ask, self._program, self._rule = client, world, ask, program, rule
        self._timeout_s, self._nodes_s, self._say = timeout_s, nodes_s, say
        self._lives = Lives(rule)
        self._names: dict[int, str] = {}

    def results(self) -> list[Any]:
        """Run the world to its end, and return what its processes returned, by process_index.

        Raises:
            PlacementError: the cluster has no room for it.
            UsageError: it has fewer nodes than a restart needs.
            GangFailure: what the program raised; or a process could not join, or died.
        """
        self._require_nodes()
        gang, placed = self._placed(self._ask, None)
        self._lives = Lives.first(self._rule, gang.ranks)
        while True:
            try:
                return gang.run(self._program, self._runs)
            except GangFailure as exc:
                failure = exc
            finally:
                stuck = gang.stop()
            start = self._next(failure, gang, stuck)
            with failure.kept_over(PlacementError):
                rooms = [room for room in read_rooms(self._client) if room.node_rank in start.nodes]
                gang, placed = self._placed(ask_again(self._ask, rooms, placed), start)

    def _require_nodes(self) -> None:
        rooms = [room.whole() for room in read_rooms(self._client)]
        there, needed = len(eligible(self._ask, rooms)), self._rule.min_nodes
        if 0 < there < needed:
            raise UsageError(f"min_nodes={needed}: the cluster has only {counted(there, 'node')} for these processes")

    def _placed(self, ask: Ask, start: Start | None) -> tuple[Gang, tuple[Seat, ...]]:
        deadline = Deadline.after(self._timeout_s, now=clock.monotonic())

        def choose(rooms: Sequence[Room]) -> tuple[Seat, ...] | None:
            return seats(ask, [room for room in rooms if start is None or room.node_rank in start.nodes])

        placed, group = place(self._client, ask, choose, deadline, self._say)
        generation = None if start is None else start.generation
        gang = Gang(self._client, self._world, generation, placed, group, deadline=deadline, say=self._say)
        return gang, placed

    def _runs(self, generation: int) -> None:
        self._lives = replace(self._lives, generation=generation).runs(generation, clock.monotonic())

    def _next(self, failure: GangFailure, gang: Gang, stuck: frozenset[int]) -> Start:
        """Return what is to be started after a failure, or raise its error."""
        if gang.generation is not None:  # the world's name may have had earlier ones
            self._lives = replace(self._lives, generation=gang.generation)
        self._lives, told = self._lives.failed(self._lives.generation, failure.cause, failure.code, clock.monotonic())
        self._end_where_over(told, failure)
        told += self._see_nodes(lost=stuck)
        for rank in sorted(self._lives.stopping):
            self._lives, more = self._lives.stopped(rank)
            told += more
        start = self._started(told, failure)
        nodes = ", ".join(self._names.get(rank, str(rank)) for rank in sorted(start.nodes)[:NAMED_NODES])
        left = self._rule.max_restarts - self._lives.used
        log_change(
            logger,
            "restart-begun",
            world=self._world,
            generation=start.generation,
            restart=self._lives.used,
            cause=failure.cause,
        )
        self._say(
            f"world {self._world!r} is started again as generation {start.generation} on {nodes}, "
            f"restarts left: {left}; {failure.cause.splitlines()[0]}"
        )
        return start

    def _see_nodes(self, lost: frozenset[int] = frozenset()) -> tuple[Instruction, ...]:
        """Compare the nodes that live with those that were there."""
        rooms = eligible(self._ask, read_rooms(self._client))
        self._names |= {room.node_rank: room.name for room in rooms}
        living = {room.node_rank for room in rooms} - lost
        told: tuple[Instruction, ...] = ()
        for rank in sorted(self._lives.there - living):
            self._lives, more = self._lives.node_lost(rank)
            told += more
        for rank in sorted(living - self._lives.there):
            self._lives, more = self._lives.node_came(rank)
            told += more
        return told

    def _started(self, told: tuple[Instruction, ...], failure: GangFailure) -> Start:
        deadline = Deadline.after(self._nodes_s, now=clock.monotonic())
        backoff, attempt, tell = Backoff(first_s=0.2, limit_s=1.0), 0, reminding(self._say)
        while True:
            for one in told:
                if isinstance(one, Start):
                    return one
            self._end_where_over(told, failure)
            now = clock.monotonic()
            waiting = [one for one in told if isinstance(one, Await)]
            if waiting:
                tell(f"world {self._world!r}: waiting for {waiting[0].needed} nodes, {waiting[0].there} are there")
            if deadline.is_over(now):
                self._lives, told = self._lives.overdue()
                continue
            clock.sleep(backoff.pause_s(attempt, deadline, now))
            attempt += 1
            told = self._see_nodes() or told

    def _end_where_over(self, told: tuple[Instruction, ...], failure: GangFailure) -> None:
        for one in told:
            if isinstance(one, GiveUp):
                if one.cause != failure.cause:
                    failure.error.add_note(f"eray: {one.cause}")
                raise failure
