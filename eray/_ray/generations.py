"""The world of `eray run` over its generations: carries out what ``Lives`` says must be stopped and started."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from eray._core.lives import Await, Doing, GiveUp, Instruction, Lives, Start, Stop
from eray._core.nodespec import NodeSpec, WorldSpec
from eray._core.timing import lasted
from eray._io import clock
from eray._io.log_lines import log_change
from eray._ray.nodes import Nodes
from eray._ray.notices import say
from eray.errors import JoinError

logger = logging.getLogger(__name__)

STOP_S = 30.0
"""How long a node may take to end the processes of a generation before it counts as lost."""


class Generations:
    """Starts the world's processes on the nodes, and after a failure all of them again.

    ``begins`` is called with each new generation's world after the first, ``over`` when no more can begin.
    """

    def __init__(
        self,
        spec: NodeSpec,
        world: WorldSpec,
        nodes: Nodes,
        *,
        begins: Callable[[int, WorldSpec], None],
        over: Callable[[str, int], None],
        spawn: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self._spec, self._whole, self._nodes = spec, world, nodes
        self._begins, self._over, self._spawn = begins, over, spawn
        self._lives = Lives.first(world.rule, range(len(spec.nodes)))
        self._started = False
        self._failed_at, self._cause = 0.0, ""
        self.world = world

    @property
    def number(self) -> int:
        """The generation that is, or was last."""
        return self._lives.generation

    @property
    def is_between(self) -> bool:
        """Whether one has failed and the next has not begun: what is heard meanwhile is no news."""
        return self._lives.doing in (Doing.STOPPING, Doing.WAITING)

    @property
    def has_run(self) -> bool:
        """Whether all processes of this generation are known to have joined, and to have run."""
        return self._lives.ran_since is not None

    @property
    def may_restart(self) -> bool:
        """Whether the world was asked to be started again at all."""
        return self._whole.rule.max_restarts > 0

    def uses(self, rank: int) -> bool:
        """Tell whether a node has processes of this generation."""
        return rank in self._lives.taking

    def start(self) -> None:
        """Start the first generation: all nodes have reported."""
        self._started = True
        self._tell_nodes()

    def failed(self, cause: str, code: int) -> bool:
        """Take the first cause of this generation's failure, and tell whether the world goes on with another one."""
        if not self._started:
            return False
        now = clock.monotonic()
        after, told = self._lives.failed(self.number, cause, code, now)
        if after.doing is Doing.OVER:
            return False
        self._failed_at, self._cause = now, cause
        self._carry_out((after, told))
        return True

    def runs(self, generation: int) -> None:
        """Note that all processes of a generation run."""
        self._lives = self._lives.runs(generation, clock.monotonic())

    def stopped(self, rank: int, generation: int) -> None:
        """Take that a node has ended what it had of a generation."""
        if generation == self.number and self.is_between:
            self._carry_out(self._lives.stopped(rank))

    def came(self, rank: int) -> None:
        """Take that a node's Ray is up."""
        self._carry_out(self._lives.node_came(rank))

    def lost(self, rank: int) -> None:
        """Take that a node is gone; what failed by it is told before."""
        self._carry_out(self._lives.node_lost(rank))

    def _carry_out(self, after: tuple[Lives, tuple[Instruction, ...]]) -> None:
        self._lives, instructions = after
        for told in instructions:
            match told:
                case Stop(ranks):
                    order = {"type": "stop-processes", "generation": self.number, "code": JoinError.exit_code}
                    for rank in sorted(ranks):
                        self._nodes.send(rank, {**order, "cause": told.cause})
                    self._spawn(self._drop_the_stuck(self.number))
                case Start(generation, ranks):
                    self._begin(generation, ranks)
                case Await(there, needed):
                    say(f"{there} of the {needed} nodes that the world needs are left; waiting for more")
                    self._spawn(self._give_up_waiting(self.number))
                case GiveUp(cause, code):
                    self._over(cause, code)

    def _begin(self, generation: int, ranks: frozenset[int]) -> None:
        self.world = self._whole.on(ranks)
        nodes, rule = self._spec.nodes, self._whole.rule
        gone = ", ".join(name for rank, name in enumerate(nodes) if rank not in ranks)
        where = f" on {len(ranks)} of {len(nodes)} nodes{gone and f', without {gone}'}" if len(nodes) > 1 else ""
        after = lasted(", ", clock.monotonic() - self._failed_at, " after the failure")
        say(
            f"the world starts again as generation {generation}: {self.world.process_count} processes{where}; restart "
            f"{self._lives.used} of {rule.max_restarts}{after}"
        )
        log_change(
            logger,
            "restart-begun",
            world=self.world.name,
            generation=generation,
            process_count=self.world.process_count,
            restart=self._lives.used,
            cause=self._cause,
        )
        self._begins(generation, self.world)
        self._tell_nodes()

    def _tell_nodes(self) -> None:
        order = {"type": "start-processes", "generation": self.number, "per_node": list(self.world.per_node)}
        for rank in sorted(self._lives.taking):
            self._nodes.send(rank, order)

    async def _drop_the_stuck(self, generation: int) -> None:
        await asyncio.sleep(STOP_S)
        if self.number == generation and self._lives.doing is Doing.STOPPING:
            for rank in sorted(self._lives.stopping):
                say(f"node {self._spec.nodes[rank]} has not ended its processes within {STOP_S:g} s and counts as lost")
                self._nodes.drop(rank)
                self.lost(rank)

    async def _give_up_waiting(self, generation: int) -> None:
        await asyncio.sleep(self._spec.cluster_timeout_s)
        if self.number == generation:
            self._carry_out(self._lives.overdue())
