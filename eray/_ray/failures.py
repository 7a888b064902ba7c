"""What fails in a cluster, as its head hears it: the world is started again, or the cluster ends with a code.

The first cause is kept and said once.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from eray._core.last_lines import telling_lines
from eray._core.missing import name_missing
from eray._core.nodespec import NodeSpec, WorldSpec
from eray._core.outcome import Outcome
from eray._io.log_lines import log_change
from eray._ray.driver import HeadDriver
from eray._ray.generations import Generations
from eray._ray.news import News
from eray._ray.nodes import Nodes
from eray._ray.notices import keep, say
from eray._ray.supervisor import Message
from eray.errors import ClusterError, ErayError, JoinError, error_data

logger = logging.getLogger(__name__)

Say = Callable[[str], None]

CULPRIT_S = 9.0
SUSPECT_S = 2.0
"""How long a process that said that it failed may take to end: its code tells whether to start again."""
HEAR_S = 3.0
"""How long processes that heard of a failure may take."""


class Failures:
    """Takes what fails. ``result`` is the exit code of the cluster, once that is decided.

    ``can_hear`` tells whether any process is connected, and so leaves by itself at the news, ``outlives_nodes`` whether
    the cluster goes on without a node: that of `eray up`, once it was complete.
    """

    def __init__(
        self,
        spec: NodeSpec,
        nodes: Nodes,
        driver: HeadDriver,
        news: News,
        *,
        can_hear: Callable[[], bool],
        outlives_nodes: Callable[[], bool],
        spawn: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self._names, self._nodes, self._driver, self._news = spec.nodes, nodes, driver, news
        self._can_hear, self._outlives_nodes = can_hear, outlives_nodes
        self.result: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.outcome = Outcome(set(range(spec.world.process_count)) if spec.world else set())
        self._is_lone = spec.job is None and spec.purpose == "tasks"  # its traceback stands there already
        self._suspect: int | None = None
        self._suspicion = ""
        self.generations: Generations | None = None
        if spec.world is not None:
            self.generations = Generations(spec, spec.world, nodes, begins=self._begin, over=self.fail, spawn=spawn)

    def finish(self, code: int) -> bool:
        """End the cluster; the first call decides the code. Return whether this was it."""
        if is_first := not self.result.done():
            self.result.set_result(code)
        return is_first

    def fail(
        self, cause: str, code: int, culprit: int | None = None, error: Message | None = None, tell: Say = say
    ) -> None:
        """Keep the first cause, tell everybody, and end unless the processes do so by themselves soon."""
        if self.result.done() or not self.outcome.failed(cause, code, culprit):
            return
        tell(cause)
        self._tell(code, error)
        own = culprit in self.outcome.running  # its code counts: it may take longer to end than the others
        heard_s = HEAR_S if self._can_hear() else 0.0
        asyncio.get_running_loop().call_later(CULPRIT_S if own else heard_s, self.finish, code)

    def fail_with(self, error: ErayError) -> None:
        """End with an error, which is raised in every process that waits for the cluster."""
        self.fail(str(error), error.exit_code, error=error_data(error))

    def world_failed(self, generation: int, cause: str, code: int, culprit: int | None = None) -> None:
        """Take the failure of the cluster's own world: start it again where that is allowed, else end."""
        if self._is_old(generation) or self._suspect is not None:
            return
        generations = self.generations
        if generations is not None and generations.may_restart and culprit in self.outcome.running:
            self._suspect, self._suspicion = culprit, cause
            asyncio.get_running_loop().call_later(SUSPECT_S, self._decide, generation, cause, code, culprit)
        else:
            self._decide(generation, cause, code, culprit)

    def _decide(self, generation: int, cause: str, code: int, culprit: int | None) -> None:
        if self._is_old(generation):
            return
        self._suspect = None
        if self._starts_again(cause, code):
            say(cause)
        else:
            self.fail(cause, code, culprit, tell=keep if self._is_lone else say)

    def child_ended(self, message: Message) -> None:
        """Take the end of a process that a supervisor started."""
        index, code, cause, generations = message["process_index"], message["code"], message["cause"], self.generations
        if generations is None or self._is_old(message["generation"]):
            return
        if self._suspect not in (None, index):
            self.outcome.running.discard(index)  # it ends because of the other one
            return
        reason = self._suspicion if self._suspect == index else ""  # what it said itself tells more than its end
        self._suspect = None
        first, said = self.outcome.cause is None, self.outcome.cause or reason
        if code or not generations.has_run:  # one that ended well may never have joined: the others would wait for it
            self._news.tell(self._driver.died, generations.world.name, generations.number, index, cause, code)
        if code and reason:
            say(reason)
        if code and self._starts_again(reason or cause, code):
            _say_end(message, said)
            return
        decided = self.outcome.ended(index, code)
        heard = code == self.outcome.told and index != self.outcome.culprit  # it left for what it was told
        if code and (first or (decided == code and not heard)):
            _say_end(message, said)
        if code and self.outcome.failed(reason or cause, JoinError.exit_code, index):
            self._tell(JoinError.exit_code)
        if decided is not None:
            self.finish(decided)

    def process_died(self, message: Message) -> None:
        """Take the death of a process that is no supervisor's child."""
        world, generation, process_index = message["place"]
        if self.generations is not None or world is None:
            return  # its own supervisor is its parent there, and tells with which code it ended
        cause = message["cause"] + ("" if message["joined"] else " before it joined")
        self.fail(cause, JoinError.exit_code, process_index)
        if message["joined"]:
            self._news.tell(self._driver.died, world, generation, process_index, cause, None)

    def node_lost(self, rank: int, name: str, reason: str, indexes: list[int]) -> None:
        """Take the loss of a node with the processes ``indexes``."""
        self._news.tell(self._driver.lose_node, rank, reason)
        generations = self.generations
        if self._outlives_nodes():
            say(f"node {name} is lost: {reason}; the cluster goes on without it")
            return
        if generations is None or generations.uses(rank):
            processes = name_missing([{"process_index": index} for index in indexes])
            cause = f"node {name} ({processes}) is lost: {reason}"
            self.world_failed(generations.number if generations else 1, cause, ClusterError.exit_code)
        if generations is not None:
            generations.lost(rank)
        if (decided := self.outcome.lost(indexes)) is not None:
            self.finish(decided)

    def ray_lost(self, rank: int, reason: str) -> bool:
        """Take the end of a node's Ray, and tell whether it is to be started again: on any node but the head."""
        log_change(logger, "ray-lost", node=self._names[rank], node_rank=rank, reason=reason)
        if rank and self._goes_on(reason, ClusterError.exit_code):
            self._news.tell(self._driver.lose_node, rank, reason)
            say(reason)
            return True
        self.fail(reason, ClusterError.exit_code)
        return False

    def node_failed(self, rank: int, error: ErayError) -> None:
        """Take an error of a node's: where the others can go on without it, it is sent away to come again."""
        if rank and self._goes_on(str(error), error.exit_code):
            say(str(error))
            self._nodes.send(rank, {"type": "come-again"})
        else:
            self.fail_with(error)

    def _goes_on(self, cause: str, code: int) -> bool:
        generations = self.generations
        if generations is None:
            return self._outlives_nodes()
        return generations.is_between or self._starts_again(cause, code)

    def _starts_again(self, cause: str, code: int) -> bool:
        generations, ended = self.generations, self.result.done() or self.outcome.cause is not None
        return generations is not None and not ended and generations.failed(cause, code)

    def _is_old(self, generation: int) -> bool:
        """Tell whether news is of a generation that is over."""
        generations = self.generations
        return generations is not None and (generations.is_between or generation != generations.number)

    def _begin(self, generation: int, world: WorldSpec) -> None:
        self.outcome, self._suspect = Outcome(set(range(world.process_count))), None
        self._news.tell(self._driver.declare, generation, world)

    def _tell(self, code: int, error: Message | None = None) -> None:
        self._nodes.broadcast({"type": "failed", "cause": self.outcome.cause, "code": code, "error": error})


def _say_end(message: Message, said: str) -> None:
    """Say how a process ended, with its last lines unless they stand just above."""
    cause, quoted = str(message["cause"]), telling_lines(message["tail"].splitlines(), said)
    words = "\n".join([f"{cause}; its last lines:", *quoted]) if quoted else cause
    say(words, printed=cause if message["shown"] else words)
