"""Random lives of worlds against the pure machine: what must hold after every event, whatever happens in between.

Processes repeat what they ask until they are answered, come twice or too late, die and lose their nodes; the
coordinator restarts from what it had answered. The seed is in the test's name.
"""

import os
import random

import pytest

from eray._core import answers, events
from eray._core.rendezvous import State, apply
from eray._core.topology import Node, Phase, Topology
from eray._core.world import JoinRequest, Seat, Stage
from eray.errors import ErayError, StaleGenerationError

SEEDS = range(600 if os.environ.get("ERAY_TEST_FULL") else 30)
EVENTS, ROUNDS, GPUS, RESTARTS = 120, 60, 4, 3
STARTED, ENDS = ("running", "barrier", "left"), (("signal 9", 137), ("ended with code 0", 0))
ORDER = ("join", "publish", "dialled", "initialised", "running", "barrier", "left", "done")


class Process:
    """One process that does what ``connect()`` and ``close()`` do, a request at a time."""

    def __init__(self, world, generation, index, count, per_node, life):
        self.world, self.generation, self.index, self.count = world, generation, index, count
        self.node = index // per_node
        local_count = min(per_node, count - self.node * per_node)
        facts = {"node": f"n{self.node}", "node_rank": self.node, "pid": 100 + life, "local_index": index % per_node}
        if GPUS % local_count == 0:
            facts |= {"visible": [str(each) for each in range(GPUS)], "gpus_on_node": GPUS, "in_step": True}
        self.facts = facts | {"local_count": local_count}
        self.join_id, self.step, self.place = f"{world}-{index}-{life}", "join", None

    @property
    def lives(self):
        return self.step not in ("gone", "done")

    def request(self):
        fields = {"world": self.world, "generation": self.generation, "process_index": self.index}
        return JoinRequest(**fields, process_count=self.count, join_id=self.join_id, facts=self.facts)

    def seat(self):
        facts = self.facts
        return Seat(**{name: facts[name] for name in ("node_rank", "local_index", "local_count", "node")})

    def event(self):
        me = (self.world, self.generation, self.index)
        if self.step == "join":
            return events.Joined(self.request())
        if self.step == "publish":
            return events.Published(*me, f"10.0.0.1:{4000 + self.generation}") if self.index == 0 else None
        if self.step == "barrier":
            return events.BarrierEntered(*me, "b", 1)
        return events.Reported(*me, Stage[self.step.upper()])

    def answer(self, state):
        me = (state, self.world, self.generation, self.index)
        if self.step == "join":
            return answers.join_answer(state, self.request())
        if self.step == "publish":
            return answers.address_answer(*me)
        if self.step == "barrier":
            return answers.barrier_answer(*me, "b", 1)
        return answers.stage_answer(*me, Stage.RUNNING) if self.step == "running" else {"done": True}


class Cluster:
    """The machine, its disk, and all that happens to it."""

    def __init__(self, seed):
        self.chance, self.now, self.life = random.Random(seed), 1000.0, 0
        self.state = self.durable = State()
        self.kept = {}
        self.launched = dict.fromkeys(("a", "b"), 0)
        self.processes = []
        for rank in range(3):
            self.give(events.NodeAdded(Node(node_rank=rank, name=f"n{rank}")))
        for world in self.launched:
            self.launch(world)

    def launch(self, world):
        """Start the next generation of a world, as a launcher does; that of "b" says nothing beforehand."""
        self.launched[world] += 1
        count, per_node, generation = self.chance.randint(1, 5), self.chance.choice([1, 2, 4]), self.launched[world]
        started = [self.process(world, generation, index, count, per_node) for index in range(count)]
        if world == "a":
            layout = tuple(each.seat() for each in started)
            self.give(events.WorldDeclared(world, count, generation, layout))
        self.processes += started

    def process(self, *place):
        self.life += 1
        return Process(*place, self.life)

    def give(self, event, answered=True):
        """Apply an event; what is answered is on disk. A refusal changes nothing."""
        self.now += 1.0
        before = self.state
        try:
            self.state = apply(before, event, self.now)
        except ErayError:
            self.state = before
            raise
        finally:
            assert before.serial <= self.state.serial
            assert before.version <= self.state.version
            self.check()
        if answered:
            self.durable = self.state
            self.keep()

    def restart(self):
        """Lose what nobody was answered."""
        before = self.durable
        self.state = State.model_validate_json(before.model_dump_json())
        assert self.state == before
        self.state = self.state.model_copy(update={"epoch": before.epoch + 1, "version": before.version + 1})
        self.durable = self.state

    def act(self, process, answered=True):
        """Let a process ask once; it goes on when the answer has come, and ends at a refusal or a failure."""
        try:
            event = process.event()
            if event is not None:
                self.give(event, answered)
            if not answered:
                return
            self.durable = self.state
            answer = process.answer(self.state)
        except ErayError:
            process.step = "gone"
            return
        if process.step == "join" and answer["done"]:
            assert answer["generation"] == self.state.worlds[process.world].generation
            assert process.generation == answer["generation"], "no process of an earlier generation is admitted"
            process.place = (answer["node_rank"], answer["local_index"], answer["local_device_ids"])
        if answer["done"]:
            process.step = ORDER[ORDER.index(process.step) + 1]
        elif answer.get("failure") is not None:
            self.die(process)

    def die(self, process):
        """End a process; its supervisor tells. One may end well before it runs, though the others wait for it."""
        words, code = ("signal 9", 137) if process.step in STARTED else self.chance.choice(ENDS)
        process.step = "gone"
        self.give(events.ProcessDied(process.world, process.generation, process.index, words, code))

    def happen(self):
        """Let one thing happen."""
        living = [each for each in self.processes if each.lives]
        what = self.chance.choices(
            ["act", "unheard", "twice", "restart", "die", "double", "stale", "node", "launch"],
            [60, 10, 8, 4, 1, 3, 4, 1, 6],
        )[0]
        if what == "restart":
            self.restart()
        elif what == "node":
            rank = self.chance.randrange(3)
            self.give(events.NodeLost(rank, "no power"))
            for each in living:
                if each.node == rank:
                    each.step = "gone"
            self.give(events.NodeAdded(Node(node_rank=rank, name=f"n{rank}")))
        elif what == "launch":
            self.relaunch(self.chance.choice(list(self.launched)))
        elif living:
            one = self.chance.choice(living)
            if what == "die":
                self.die(one)
            elif what == "double":
                self.processes.append(self.process(one.world, one.generation, one.index, one.count, 4))
                self.act(self.processes[-1])
            elif what == "stale":
                self.come_late(one)
            else:
                self.act(one, answered=what != "unheard")
                if what == "twice" and one.lives:
                    self.act(one)

    def come_late(self, one):
        """Let a process of an earlier generation ask for a place."""
        world = self.state.worlds.get(one.world)
        if world is not None and world.generation > 1:
            late = self.process(one.world, world.generation - 1, 0, one.count, 4)
            with pytest.raises(StaleGenerationError):
                self.give(events.Joined(late.request()))
            with pytest.raises(StaleGenerationError):
                answers.join_answer(self.state, late.request())

    def relaunch(self, name):
        """Start a world again that has failed: what is left of it is ended first."""
        world = self.state.worlds.get(name)
        if world is None or world.failure is None or self.launched[name] > RESTARTS:
            return
        for each in self.processes:
            if each.world == name and each.lives:
                self.die(each)
        self.launch(name)

    def check(self):
        """Hold the state to its invariants."""
        picture = answers.picture(self.state)
        assert Topology.model_validate_json(picture.model_dump_json()) == picture
        for world in self.state.worlds.values():
            members = [each for each in world.members if each is not None]
            assert list(world.reached) == [sum(each.stage >= stage for each in members) for stage in Stage]
            if not world.planned:
                continue
            places = [(each.place.node_rank, each.place.local_index) for each in members]
            assert len(set(places)) == len(places) == world.process_count
            ids = [(each.place.node_rank, at) for each in members for at in each.place.local_device_ids or ()]
            assert len(set(ids)) == len(ids), "no device has two processes"

    def keep(self):
        """Compare with what was answered before: it stays as long as the generation."""
        for world in self.durable.worlds.values():
            places = tuple(each and each.place for each in world.members) if world.planned else None
            stages = tuple(-1 if each is None else each.stage for each in world.members)
            found = (places, world.coordinator_address, world.process_count, stages)
            known = self.kept.get((world.name, world.generation))
            if known is not None:
                assert all(old in (None, new) for old, new in zip(known[:3], found[:3], strict=True))
                assert all(old <= new for old, new in zip(known[3], stages, strict=True))
            self.kept[world.name, world.generation] = found
            later = [generation for name, generation in self.kept if name == world.name]
            assert max(later) == world.generation, "generations do not go back"


@pytest.mark.parametrize("seed", SEEDS)
def test_random_lives_keep_every_promise_and_come_to_an_end(seed):
    cluster = Cluster(seed)
    for _ in range(EVENTS):
        cluster.happen()
    for turn in range(ROUNDS):
        for world in cluster.launched:
            cluster.relaunch(world)
        living = [each for each in cluster.processes if each.lives]
        cluster.chance.shuffle(living)
        for each in living:
            if each.lives:
                cluster.act(each)
            if turn > ROUNDS // 2 and each.step == "join" and each.world == "b":
                cluster.die(each)  # only its deadline ends the wait for one who died unknown in an undeclared world
    assert [each.step for each in cluster.processes if each.lives] == [], "nobody waits for ever"
    for name in cluster.launched:
        world = cluster.state.worlds.get(name)
        nobody_came = world is None or not any(world.members)
        assert nobody_came or world.phase in (Phase.CLOSED, Phase.FAILED)
