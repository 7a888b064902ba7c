"""Await the processes of one generation: all results, or the first failure."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import ray

from eray._core.timing import Reminder
from eray._io import clock
from eray._ray import remains
from eray._ray.gang_failure import GangFailure, Member, annotate, end_words, failure_of, has_raised
from eray._ray.placing import SAY_S
from eray._ray.world_news import WorldNews
from eray.errors import JoinError, WorldFailedError

CULPRIT_S = 2.0
"""How long it may take until Ray tells of the process that, as the coordinator knows, failed first."""
STOPPED = "was stopped with its world"


class Collecting:
    """The calls of all processes, and what became of them."""

    def __init__(
        self, refs: Mapping[Any, Member], news: WorldNews, world: str, generation: int, say: Callable[[str], None]
    ) -> None:
        self._members, self._news, self._say = dict(refs), news, say
        self._world, self._generation = world, generation
        self._waiting, self._errors = dict(refs), dict[int, BaseException]()
        self._results: dict[int, Any] = {}
        self._culprit: int | None = None
        self._words: dict[int, str] = {}

    def results(self) -> list[Any]:
        """Return what each process returned, by process_index.

        Raises:
            GangFailure: one failed.
            ClusterLostError: the coordinator is gone.
        """
        reminder = Reminder(now=clock.monotonic(), soonest_s=SAY_S)
        while self._waiting:
            ready, _ = ray.wait([*self._waiting, self._news.ref], num_returns=1, timeout=SAY_S)
            if self._news.ref in ready:
                self._news.take()
            elif not ready and self._news.awaited is not None:
                self._news.refresh()  # the coordinator's word comes with each phase, not with each process
            for ref in ready:
                if ref in self._waiting:
                    self._take(ref)
            if self._errors or self._news.failure is not None:
                raise self._failure()
            if self._news.awaited is not None:
                line = reminder.line(f"world {self._world!r}: waiting for {self._news.awaited}", clock.monotonic())
                if line is not None:
                    self._say(line)
        return [self._results[index] for index in range(len(self._members))]

    def unfinished(self) -> Iterator[tuple[int, str]]:
        """Yield those that did not come to a good end, with how they ended; the one that failed first is the first."""
        for index in sorted(range(len(self._members)), key=lambda index: (index != self._culprit, index)):
            if index not in self._results:
                yield index, self._words.get(index) or STOPPED

    def take_late(self) -> None:
        """Take what has come of the others meanwhile: Ray prints each error that nobody has asked for."""
        for ref in ray.wait(list(self._waiting), num_returns=len(self._waiting), timeout=0)[0] if self._waiting else ():
            self._take(ref)

    def _take(self, ref: Any) -> None:
        member = self._waiting.pop(ref)
        try:
            self._results[member.process_index] = ray.get(ref).open(member.process_index)
        except Exception as exc:  # the program's own too
            self._errors[member.process_index] = exc

    def _failure(self) -> GangFailure:
        """Return the failure by its first cause: Ray may tell of another process before the one that failed first."""
        seen = next(iter(self._errors), None)
        self._news.refresh()
        told = self._news.failure
        self._culprit = first = seen if told is None else told[1]
        late = [ref for ref, member in self._waiting.items() if member.process_index == first]
        if late:
            ray.wait(late, timeout=CULPRIT_S)
        self.take_late()
        members = {member.process_index: member for member in self._members.values()}
        words = self._last_words(members.get(-1 if first is None else first))
        if first in self._errors:
            failure = failure_of(self._world, self._generation, members[first], self._errors[first], words.killed)
        else:
            assert told is not None
            error = WorldFailedError(self._world, self._generation, told[0])
            failure = GangFailure(told[0], JoinError.exit_code, error, first)
        self._words = {index: end_words(error) for index, error in self._errors.items()}
        if words.killed is not None and first in self._errors and not has_raised(self._errors[first]):
            self._words[first] = words.killed
        others = {members[index].name: each for index, each in self._words.items() if index != first}
        annotate(failure, self._world, self._generation, words.tail, others)
        return failure

    def _last_words(self, member: Member | None) -> remains.LastWords:
        if member is None:
            return remains.LastWords()
        node, facts = member.seat.ray_node_id, member.facts
        answers = remains.on_nodes(remains.last_words, {node: (facts.stderr, facts.memory)})
        found: remains.LastWords = answers.get(node, remains.LastWords())
        return found
