"""The actors of one generation of a launched world: started, told who they are, and ended together."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import ray
import ray.exceptions
from ray.util.placement_group import PlacementGroup, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from eray._core.gang_layout import Seat, process_order
from eray._core.missing import name_missing
from eray._core.timing import Deadline
from eray._io import clock
from eray._ray import remains
from eray._ray.cluster_client import reminding
from eray._ray.gang_actor import ActorFacts, GangProcess, MemberPlace
from eray._ray.gang_failure import GangFailure, Member, end_words, failed_by
from eray._ray.gang_results import Collecting
from eray._ray.placing import SAY_S
from eray._ray.program import Program
from eray._ray.rooms import read_rooms
from eray._ray.world_news import WorldNews
from eray.errors import ConfigurationError, ErayError, JoinError, JoinTimeoutError

if TYPE_CHECKING:
    from eray._ray.client import CoordinatorClient

TELL_S = 5.0


class Gang:
    """One generation. ``stop`` must be called at its end, however it ends."""

    def __init__(
        self,
        client: "CoordinatorClient",
        world: str,
        generation: int | None,
        seats: Sequence[Seat],
        group: PlacementGroup,
        *,
        deadline: Deadline,
        say: Callable[[str], None],
    ) -> None:
        """``generation`` None is the world's next one."""
        self._client, self._world, self._seats, self._group = client, world, seats, group
        self._wanted, self._deadline, self._say = generation, deadline, say
        self._actors: list[Any] = []
        self._members: list[Member] = []
        self._collecting: Collecting | None = None
        self.generation: int | None = None
        self.ranks = frozenset(seat.node_rank for seat in seats)

    def run(self, program: Program, running: Callable[[int], None]) -> list[Any]:
        """Run the program in all processes and return what it returned, by process_index.

        ``running`` is called with the generation when all processes have joined.

        Raises:
            GangFailure: a process failed; the others are still to be stopped.
            JoinTimeoutError: some did not start in time.
            ClusterLostError: the coordinator is gone.
        """
        values = program.values()
        self._members = self._started(program)
        rows = [member.seat.row for member in self._members]
        generation = self._client.declare_world(self._world, len(rows), generation=self._wanted, layout=rows)
        self.generation = generation
        refs = {self._call(member, generation, program, values): member for member in self._members}
        news = WorldNews(self._client.handle, self._world, generation, running)
        self._collecting = Collecting(refs, news, self._world, generation, self._say)
        return self._collecting.results()

    def stop(self) -> frozenset[int]:
        """End all processes, and return the ranks of the nodes on which some are left, or that do not answer."""
        if not ray.is_initialized():
            return frozenset()
        for actor in self._actors:
            ray.kill(actor)
        remove_placement_group(self._group)
        self._tell_dead()
        living, lives = self._living(), dict[str, list[tuple[int, int]]]()
        for member in self._members:
            if member.seat.ray_node_id in living:
                lives.setdefault(member.seat.ray_node_id, []).append((member.facts.pid, member.facts.started))
        gone = remains.on_nodes(remains.end_all, lives, remains.GONE_S)
        if self._collecting is not None:
            self._collecting.take_late()
        return frozenset(m.seat.node_rank for m in self._members if not gone.get(m.seat.ray_node_id))

    def _living(self) -> set[str]:
        """Return the nodes that can be asked; the coordinator may know of a loss before Ray does."""
        try:
            return {room.ray_node_id for room in read_rooms(self._client)}
        except ErayError:
            return {seat.ray_node_id for seat in self._seats}

    def _started(self, program: Program) -> list[Member]:
        """Start the actors, and return them by process_index."""
        actor_class: Any = ray.remote(GangProcess)
        for position, seat in enumerate(self._seats):
            bundle = PlacementGroupSchedulingStrategy(self._group, placement_group_bundle_index=position)
            options = actor_class.options(
                num_cpus=seat.cpus,
                num_gpus=seat.gpus,
                max_restarts=0,
                runtime_env=program.environment(self._wanted),
                scheduling_strategy=bundle,
            )
            self._actors.append(options.remote(self._world))
        facts = self._looks()
        members: list[Member] = []
        for index, at in enumerate(process_order(self._seats, [each.tokens for each in facts])):
            local_index = sum(each.seat.ray_node_id == self._seats[at].ray_node_id for each in members)
            seat = replace(self._seats[at], local_index=local_index)
            members.append(Member(index, seat, facts[at], self._actors[at]))
        return members

    def _looks(self) -> list[ActorFacts]:
        refs = [actor.look.remote() for actor in self._actors]
        waiting, seats = list(refs), dict(zip(refs, self._seats, strict=True))
        tell = reminding(self._say)
        while waiting:
            remaining_s = self._deadline.remaining_s(clock.monotonic())
            ready, waiting = ray.wait(waiting, num_returns=len(waiting), timeout=min(remaining_s, SAY_S))
            for ref in ready:
                self._require_start(ref, seats[ref])
            if waiting:
                missing = [{"process_index": refs.index(ref), "node": seats[ref].node} for ref in waiting]
                if self._deadline.is_over(clock.monotonic()):
                    raise JoinTimeoutError(self._world, name_missing(missing), self._deadline.timeout_s, "start")
                tell(f"world {self._world!r}: waiting for {name_missing(missing)} to start")
        return list(ray.get(refs))

    def _require_start(self, ref: Any, seat: Seat) -> None:
        try:
            ray.get(ref)
        except ray.exceptions.RuntimeEnvSetupError as exc:
            raise ConfigurationError(f"runtime_env cannot be set up on node {seat.node}: {exc}") from exc
        except ray.exceptions.RayError as exc:
            cause = f"a process on {seat.node} {end_words(exc)}"
            failed = failed_by(self._world, self.generation or 1, cause, exc)
            raise GangFailure(cause, JoinError.exit_code, failed) from exc

    def _call(self, member: Member, generation: int, program: Program, values: Sequence[Any]) -> Any:
        place = MemberPlace(
            world=self._world,
            generation=generation,
            process_index=member.process_index,
            process_count=len(self._members),
            gpus=int(member.seat.gpus),
            devices=program.devices,
            timeout_s=max(self._deadline.remaining_s(clock.monotonic()), 1.0),
        )
        return member.actor.run.remote(program.body, place, values[0], list(program.kwargs), *values[1:])

    def _tell_dead(self) -> None:
        """Tell the coordinator of those that had not left: nobody else will, and a world is kept until all are gone."""
        if self._collecting is None or self.generation is None:
            return
        calls = [
            self._client.handle.died.remote(self._world, self.generation, index, words)
            for index, words in self._collecting.unfinished()
        ]
        with suppress(ray.exceptions.RayError):
            ray.wait(calls, num_returns=len(calls), timeout=TELL_S)
