import json
import time

import pytest

from eray._core import answers, events
from eray._core.barriers import KEPT_BARRIERS
from eray._core.missing import name_missing
from eray._core.rendezvous import KEPT_WORLDS, State, apply
from eray._core.topology import Node, Phase, Topology
from eray._core.world import JoinRequest, Stage
from eray.errors import (
    DuplicateProcessError,
    ErayError,
    NotJoinedError,
    StaleGenerationError,
    UsageError,
    WorldContradictionError,
)


def check(state):
    """Recount what the state keeps, and hold each world to its invariants."""
    for name, world in state.worlds.items():
        assert name == world.name
        assert len(world.members) == world.process_count
        joined = [member for member in world.members if member is not None]
        for stage in Stage:
            assert world.reached[stage] == sum(member.stage >= stage for member in joined)
        assert world.planned == (bool(joined) and all(member and member.place for member in world.members))
        assert world.timeline[-1][0] == world.phase
        times = [at for _, at in world.timeline]
        assert times == sorted(times)
        assert world.coordinator_address is None or world.planned
        if world.phase in (Phase.RUNNING, Phase.DRAINING, Phase.CLOSED):
            assert world.planned
        for barrier in world.barriers.values():
            assert len(barrier.arrived) < world.process_count
            assert bool(barrier.arrived) == (barrier.opened_at is not None)
    for world in answers.picture(state).worlds:
        if not state.worlds[world.name].planned:
            continue
        places = [(p.node_rank, p.local_index) for p in world.processes if p.local_index is not None]
        assert len(set(places)) == len(places)
    assert Topology.model_validate(json.loads(answers.picture(state).model_dump_json())) == answers.picture(state)


class Cluster:
    """Feeds the real core with events, a second apart, and checks the state after each."""

    def __init__(self, checked=True):
        self.state, self.now, self.checked = State(), 1000.0, checked

    def do(self, event):
        self.now += 1.0
        before = self.state
        try:
            self.state = apply(before, event, self.now)
        finally:
            assert before.serial <= self.state.serial <= before.serial + 2
            assert (self.state is before) == (self.state.serial == before.serial)
            if self.checked:
                check(self.state)
        return self.state

    def join(self, index, count=2, world="main", **changes):
        asked = request(index, count, world, **changes)
        self.do(events.Joined(asked))
        return answers.join_answer(self.state, asked)

    def report(self, index, stage, generation=1):
        return self.do(events.Reported("main", generation, index, stage))

    def died(self, index, cause="signal 9", code=None, generation=1):
        return self.do(events.ProcessDied("main", generation, index, cause, code))

    def barrier(self, index, name="b", sequence=1, generation=1):
        self.do(events.BarrierEntered("main", generation, index, name, sequence))
        return answers.barrier_answer(self.state, "main", generation, index, name, sequence)

    @property
    def world(self):
        return self.state.worlds["main"]

    def at(self, phase, count=2):
        """Bring world "main" to a phase."""
        for index in range(count if phase != Phase.FORMING else count - 1):
            self.join(index, count)
        order = list(Phase)
        if order.index(phase) >= order.index(Phase.PUBLISHED):
            self.do(events.Published("main", 1, 0, "10.0.0.1:4000"))
        if order.index(phase) >= order.index(Phase.RUNNING):
            for index in range(count):
                self.report(index, Stage.RUNNING)
        leaving = {Phase.DRAINING: 1, Phase.CLOSED: count}.get(phase, 0)
        for index in range(leaving):
            self.report(index, Stage.LEFT)
        assert self.world.phase == phase
        return self


def request(index, count=2, world="main", *, generation=None, join_id=None, per_node=2, **facts):
    node = index // per_node
    defaults = {
        "node": f"node{node:02}",
        "node_rank": node,
        "hostname": f"node{node:02}.site",
        "local_index": index % per_node,
        "local_count": min(per_node, count - node * per_node),
        "pid": 100 + index,
    }
    return JoinRequest(
        world=world,
        generation=generation,
        process_index=index,
        process_count=count,
        join_id=join_id or f"{world}-{index}-first",
        facts=defaults | facts,
    )


LIVING = [Phase.FORMING, Phase.PLANNED, Phase.PUBLISHED, Phase.RUNNING, Phase.DRAINING]


def test_world_goes_through_all_its_phases():
    cluster = Cluster().at(Phase.CLOSED)
    assert [phase for phase, _ in cluster.world.timeline] == [*LIVING, Phase.CLOSED]


def test_join_before_the_last_names_who_is_missing():
    answer = Cluster().join(1, count=3)
    assert (answer["done"], answer["phase"], answer["generation"]) == (False, "forming", 1)
    assert answer["missing"] == [
        {"process_index": 0, "node": None, "state": "absent"},
        {"process_index": 2, "node": None, "state": "absent"},
    ]
    assert answer["missing_count"] == 2


def test_join_of_declared_world_names_the_node_of_the_missing():
    cluster = Cluster()
    cluster.do(events.WorldDeclared("main", 2, 1, [[0, 0, 1, "node00"], [1, 0, 1, "node01"]]))
    answer = cluster.join(0)
    assert name_missing(answer["missing"], answer["missing_count"]) == "process 1 (node01)"


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 1, 0, 2)])
def test_plan_divides_devices_whatever_the_order_of_joins(order):
    cluster = Cluster()
    for index in order:
        cluster.join(index, 4, visible=("3", "5"), gpus_on_node=2, in_step=True)
    found = [cluster.join(index, 4) for index in range(4)]
    assert [(a["node_rank"], a["local_index"], a["local_device_ids"], a["device_rule"]) for a in found] == [
        (0, 0, [0], "split"),
        (0, 1, [1], "split"),
        (1, 0, [0], "split"),
        (1, 1, [1], "split"),
    ]


def test_plan_without_devices_leaves_the_ids_open():
    cluster = Cluster().at(Phase.PLANNED)
    answer = cluster.join(0)
    assert (answer["local_device_ids"], answer["device_rule"]) == (None, "none")


def test_plan_bears_processes_whose_cgroups_show_different_hardware():
    cluster = Cluster()
    for index in range(2):
        seen = ("0", "1")[: index + 1]
        cluster.join(index, visible=tuple(f"GPU-{index}{token}" for token in seen), hardware_count=len(seen))
    assert [member.place.device_rule for member in cluster.world.members] == ["own", "own"]


def test_plan_finds_local_index_and_rank_where_a_process_cannot_know():
    cluster = Cluster()
    cluster.do(events.NodeAdded(Node(node_rank=5, name="known")))
    unknown = {"node_rank": None, "local_index": None, "local_count": None}
    for index, node in enumerate(["new-b", "known", "new-b", "new-a"]):
        cluster.join(index, 4, node=node, **unknown)
    places = [member.place for member in cluster.world.members]
    assert [(place.node_rank, place.local_index) for place in places] == [(6, 0), (5, 0), (6, 1), (7, 0)]


def test_plan_that_cannot_be_fails_the_world_for_all_with_its_text():
    cluster = Cluster()
    for index in range(3):
        cluster.join(index, 3, per_node=3, visible=("0", "1"), gpus_on_node=2, in_step=True)
    assert cluster.world.phase == Phase.FAILED
    answer = cluster.join(0, 3)
    assert answer["failure_error"]["type"] == "DevicePlanError"
    assert "node00" in answer["failure"]
    assert (answer["done"], answer["local_device_ids"], answer["device_rule"]) == (False, None, None)


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ([{}, {"local_count": 3}], "the number of processes on node00 is 2, but 3"),
        ([{}, {"local_index": 0}], "the local index on node00 is each of 0 to 1 once, but 0, 0"),
        ([{}, {"local_index": 2}], "the local index on node00"),
        ([{"gpus_on_node": 2}, {"gpus_on_node": 4}], "GPUs on node00 is 2, but 4"),
    ],
)
def test_plan_of_processes_that_contradict_each_other_fails_the_world(facts, words):
    cluster = Cluster()
    for index in range(2):
        cluster.join(index, **facts[index])
    assert words in cluster.world.failure.cause


def test_join_asked_again_with_the_same_id_changes_nothing():
    cluster = Cluster().at(Phase.RUNNING)
    before = cluster.state
    answer = cluster.join(1)
    assert cluster.state is before
    assert answer["done"]


@pytest.mark.parametrize("phase", [Phase.FORMING, Phase.PLANNED, Phase.PUBLISHED, Phase.RUNNING])
def test_second_living_process_of_one_index_is_refused_with_both_names(phase):
    cluster = Cluster().at(phase)
    with pytest.raises(DuplicateProcessError, match=r"pid 100 on node00\.site.*pid 777 on node09"):
        cluster.join(0, join_id="another", pid=777, hostname="", node="node09")


@pytest.mark.parametrize("phase", LIVING)
def test_other_process_count_is_refused_with_both_values(phase):
    cluster = Cluster().at(phase)
    with pytest.raises(WorldContradictionError, match="process_count is 2, but 4"):
        cluster.join(3, 4)


def test_join_beyond_the_last_index_is_refused():
    with pytest.raises(ValueError, match="process_index 2 is not below process_count 2"):
        request(2, 2)


@pytest.mark.parametrize("phase", [*LIVING, Phase.CLOSED])
def test_join_of_stale_generation_is_refused(phase):
    cluster = Cluster().at(phase)
    cluster.do(events.WorldDeclared("main", 2, 2))
    with pytest.raises(StaleGenerationError, match="generation 1, the world is now in generation 2"):
        cluster.join(0, generation=1)


def test_join_of_later_generation_supersedes_the_world():
    cluster = Cluster().at(Phase.RUNNING)
    answer = cluster.join(0, generation=3, join_id="later")
    assert (answer["generation"], answer["phase"]) == (3, "forming")
    with pytest.raises(StaleGenerationError):
        cluster.report(0, Stage.LEFT, generation=1)


def test_join_after_closed_opens_a_new_generation_also_of_another_size():
    cluster = Cluster().at(Phase.CLOSED)
    assert cluster.join(0, 3, join_id="second life")["generation"] == 2
    assert cluster.world.process_count == 3


def test_join_while_draining_waits_outside_until_all_have_left():
    cluster = Cluster().at(Phase.DRAINING)
    waiting = cluster.join(0, join_id="second life")
    assert (waiting["generation"], waiting["done"]) == (None, False)
    assert name_missing(waiting["missing"]) == "process 1 (node00)"
    cluster.report(1, Stage.LEFT)
    assert cluster.join(0, join_id="second life")["generation"] == 2


def test_late_first_join_of_failed_world_is_told_the_failure():
    cluster = Cluster()
    cluster.join(0, 3)
    cluster.join(1, 3)
    cluster.died(0)
    answer = cluster.join(2, 3)
    assert "process 0 on node00 died" in answer["failure"]
    assert answer["generation"] is None


@pytest.mark.parametrize("all_gone", [True, False])
def test_new_run_after_a_failure_opens_a_new_generation(all_gone):
    cluster = Cluster().at(Phase.RUNNING)
    cluster.died(0)
    if all_gone:
        cluster.died(1)
    index = 1 if all_gone else 0
    assert cluster.join(index, join_id="second run")["generation"] == 2


def test_waiter_of_failed_world_never_slips_into_the_next_generation():
    cluster = Cluster().at(Phase.FORMING)
    cluster.died(0)
    cluster.join(0, join_id="second run")
    with pytest.raises(StaleGenerationError):
        cluster.join(0, generation=1)


@pytest.mark.parametrize("phase", LIVING)
def test_death_before_leaving_fails_the_world_in_every_phase(phase):
    cluster = Cluster().at(phase)
    index = 1 if phase == Phase.DRAINING else 0
    cluster.died(index, "signal 9", code=137)
    assert cluster.world.phase == Phase.FAILED
    left = "; before it process 0 (node00) had left" if phase == Phase.DRAINING else ""
    assert cluster.world.failure.cause == f"process {index} on node00 died: signal 9{left}"
    assert (cluster.world.failure.code, cluster.world.failure.process_index) == (137, index)


def test_death_before_joining_fails_the_world():
    cluster = Cluster().at(Phase.FORMING)
    cluster.died(1, "exit code 3", code=3)
    assert cluster.world.failure.cause == "process 1 on an unknown node ended before it joined: exit code 3"


ENDED = "process 1 on node00 (pid 7) ended with code 0"


@pytest.mark.parametrize("order", [("end", "join"), ("join", "end"), ("end", "end", "join")])
def test_end_with_0_before_joining_fails_a_world_that_another_joins(order):
    cluster = Cluster()
    cluster.do(events.WorldDeclared("main", 3))
    for step in order:
        assert cluster.state.worlds["main"].failure is None
        if step == "end":
            cluster.died(1, ENDED, code=0)
            cluster.died(2, "another one", code=0)
        else:
            cluster.join(0, 3, generation=1)
    failure = cluster.world.failure
    assert failure.cause == f"{ENDED} before it joined; call eray.connect() in each process, or in none"
    assert (failure.process_index, failure.code, failure.at) == (1, 0, dict(cluster.world.timeline)[Phase.FAILED])
    assert answers.join_answer(cluster.state, request(0, 3, generation=1))["failure"] == failure.cause


def test_end_with_0_of_all_before_any_joins_is_no_failure():
    cluster = Cluster()
    cluster.do(events.WorldDeclared("main", 2))
    for index in range(2):
        cluster.died(index, ENDED, code=0)
    assert cluster.world.phase == Phase.FORMING
    cluster.do(events.WorldDeclared("main", 2, generation=2))
    assert cluster.join(0, generation=2)["failure"] is None


@pytest.mark.parametrize("phase", [Phase.FORMING, Phase.PLANNED, Phase.PUBLISHED])
def test_end_with_0_after_joining_and_before_running_fails_the_world(phase):
    cluster = Cluster().at(phase)
    cluster.died(0, ENDED.replace("1", "0", 1), code=0)
    assert cluster.world.failure.cause == "process 0 on node00 (pid 7) ended with code 0 before it had started"
    assert cluster.world.members[0].state == "dead"


@pytest.mark.parametrize("phase", [Phase.RUNNING, Phase.DRAINING, Phase.CLOSED])
def test_end_with_0_of_one_that_ran_is_no_news(phase):
    cluster = Cluster().at(phase)
    before = cluster.state
    assert cluster.died(0, ENDED, code=0) is before


@pytest.mark.parametrize(
    ("left", "words"),
    [
        ([], ""),
        ([2], "; before it process 2 (node01) had left"),
        ([4, 1, 3, 2], "; before it processes 1 (node00), 2 and 3 (node01), 4 (node02) had left"),
        (range(1, 20), "(node07), 16 (node08) and 3 more had left"),
    ],
)
def test_failure_tells_who_had_left_before_it(left, words):
    cluster = Cluster().at(Phase.RUNNING, 20)
    for index in left:
        cluster.report(index, Stage.LEFT)
    cluster.do(events.ProcessFailed("main", 1, 0, "connection closed by peer"))
    cluster.report(19, Stage.LEFT)
    cause = "process 0 on node00: connection closed by peer"
    found = cluster.world.failure.cause
    assert found.startswith(cause)
    assert found.endswith(words)
    assert (found == cause) == (words == "")


@pytest.mark.parametrize("phase", [Phase.DRAINING, Phase.CLOSED])
def test_death_after_leaving_is_only_noted(phase):
    cluster = Cluster().at(phase)
    cluster.died(0)
    assert cluster.world.phase == phase
    assert cluster.world.members[0].dead


@pytest.mark.parametrize("event", [events.ProcessDied("main", 7, 0, "x"), events.ProcessDied("other", 1, 0, "x")])
def test_death_of_another_life_changes_nothing(event):
    cluster = Cluster().at(Phase.RUNNING)
    before = cluster.state
    assert cluster.do(event) is before


def test_first_cause_of_failure_is_kept_and_gets_its_exit_code_later():
    cluster = Cluster().at(Phase.RUNNING)
    cluster.do(events.ProcessFailed("main", 1, 1, "JAX has 3 devices"))
    cluster.died(0, "signal 6", code=134)
    cluster.died(1, "exit code 5", code=5)
    failure = cluster.world.failure
    assert (failure.cause, failure.code) == ("process 1 on node00: JAX has 3 devices", 5)
    assert [member.state for member in cluster.world.members] == ["dead", "dead"]


@pytest.mark.parametrize("phase", [Phase.FORMING, Phase.PLANNED, Phase.PUBLISHED])
def test_leaving_before_running_fails_the_world(phase):
    cluster = Cluster().at(phase)
    cluster.report(0, Stage.LEFT)
    assert cluster.world.failure.cause == "process 0 on node00 left before it had started"


def test_lost_node_fails_worlds_with_processes_there_and_only_those():
    cluster = Cluster()
    cluster.do(events.NodeAdded(Node(node_rank=1, name="node01")))
    for index in range(4):
        cluster.join(index, 4)
    cluster.join(0, 1, world="elsewhere")
    cluster.do(events.NodeLost(1, "no heartbeat for 5 s"))
    assert cluster.world.failure.cause == "node node01 was lost: no heartbeat for 5 s"
    assert [member.state for member in cluster.world.members] == ["joined", "joined", "dead", "dead"]
    assert cluster.state.worlds["elsewhere"].phase == Phase.PLANNED
    assert answers.watch_answer(cluster.state, cluster.now)["lost_nodes"] == [{"node_rank": 1, "node": "node01"}]


def test_lost_node_fails_a_world_that_still_awaits_processes_there():
    cluster = Cluster()
    cluster.do(events.WorldDeclared("main", 2, 1, [[0, 0, 1, "node00"], [1, 0, 1, "node01"]]))
    cluster.do(events.NodeLost(1, "gone"))
    assert cluster.world.phase == Phase.FAILED


def test_lost_node_of_a_closed_world_changes_only_the_node():
    cluster = Cluster().at(Phase.CLOSED)
    cluster.do(events.NodeLost(0, "gone"))
    assert cluster.world.phase == Phase.CLOSED


@pytest.mark.parametrize(
    ("event", "error"),
    [
        (events.Published("main", 1, 1, "h:1"), UsageError),
        (events.Published("main", 1, 0, "h:2"), WorldContradictionError),
        (events.Published("main", 2, 0, "h:1"), NotJoinedError),
        (events.Reported("main", 1, 5, Stage.RUNNING), NotJoinedError),
        (events.Reported("other", 1, 0, Stage.RUNNING), NotJoinedError),
        (events.BarrierEntered("main", 1, 2, "b", 1), NotJoinedError),
        (events.WorldDeclared("main", 3, 1), WorldContradictionError),
        (events.WorldDeclared("main", 2), WorldContradictionError),
        (events.WorldDeclared("main", 2, 1, [[0, 0, 1, "n"]]), UsageError),
    ],
)
def test_event_that_makes_no_sense_is_refused_and_changes_nothing(event, error):
    cluster = Cluster().at(Phase.PUBLISHED)
    before = cluster.state
    with pytest.raises(error):
        cluster.do(event)
    assert cluster.state is before


@pytest.mark.parametrize("stage", [Stage.DIALLED, Stage.INITIALISED, Stage.RUNNING])
def test_stage_before_the_plan_is_refused(stage):
    cluster = Cluster().at(Phase.FORMING)
    with pytest.raises(UsageError, match="before all have joined"):
        cluster.report(0, stage)


def test_stage_never_goes_back():
    cluster = Cluster().at(Phase.RUNNING)
    before = cluster.state
    assert cluster.report(0, Stage.DIALLED) is before


def test_published_address_reaches_every_process_of_the_generation():
    cluster = Cluster().at(Phase.PLANNED)
    waiting = answers.address_answer(cluster.state, "main", 1, 1)
    assert (waiting["done"], name_missing(waiting["missing"])) == (False, "process 0 (node00)")
    cluster.do(events.Published("main", 1, 0, "10.0.0.1:4000"))
    assert answers.address_answer(cluster.state, "main", 1, 1)["coordinator_address"] == "10.0.0.1:4000"
    dialled = answers.stage_answer(cluster.state, "main", 1, 0, Stage.DIALLED)
    assert [entry["process_index"] for entry in dialled["missing"]] == [1]


def test_all_left_is_true_of_an_earlier_generation():
    cluster = Cluster().at(Phase.CLOSED)
    cluster.join(0, join_id="second life")
    assert answers.stage_answer(cluster.state, "main", 1, 1, Stage.LEFT)["done"]
    with pytest.raises(StaleGenerationError):
        answers.stage_answer(cluster.state, "main", 1, 1, Stage.RUNNING)


def test_declared_world_takes_the_next_generation_after_an_end():
    cluster = Cluster().at(Phase.CLOSED)
    cluster.do(events.WorldDeclared("main", 4))
    assert (cluster.world.generation, cluster.world.process_count) == (2, 4)
    cluster.died(1, generation=2)
    cluster.do(events.WorldDeclared("main", 3))
    assert (cluster.world.generation, cluster.world.phase) == (3, Phase.FORMING)


def test_declaring_again_what_is_known_changes_nothing():
    cluster = Cluster()
    layout = [[0, 0, 1, "node00"], [1, 0, 1, "node01"]]
    cluster.do(events.WorldDeclared("main", 2, 1))
    before = cluster.do(events.WorldDeclared("main", 2, 1, layout))
    assert cluster.do(events.WorldDeclared("main", 2, 1, layout)) is before
    assert cluster.do(events.WorldDeclared("main", 2, 1)) is before


def test_barrier_names_the_missing_and_opens_when_all_came():
    cluster = Cluster().at(Phase.RUNNING, count=4)
    assert cluster.barrier(2)["missing_count"] == 3
    answer = cluster.barrier(0)
    assert (answer["done"], name_missing(answer["missing"])) == (False, "processes 1 (node00), 3 (node01)")
    cluster.barrier(1)
    assert cluster.barrier(3)["done"]
    assert answers.barrier_answer(cluster.state, "main", 1, 2, "b", 1)["done"]


def test_barrier_asked_again_changes_nothing():
    cluster = Cluster().at(Phase.RUNNING)
    cluster.barrier(0)
    before = cluster.state
    cluster.barrier(0)
    assert cluster.state is before
    cluster.barrier(1)
    before = cluster.state
    assert cluster.barrier(0)["done"]
    assert cluster.state is before


def test_barrier_is_used_again_under_the_same_name():
    cluster = Cluster().at(Phase.RUNNING)
    for sequence in (1, 2, 3):
        assert not cluster.barrier(0, sequence=sequence)["done"]
        assert cluster.barrier(1, sequence=sequence)["done"]
    assert cluster.world.passes == 3


def test_barrier_turn_that_was_never_passed_cannot_be_skipped():
    cluster = Cluster().at(Phase.RUNNING)
    cluster.barrier(0)
    with pytest.raises(UsageError, match="turn 1 is not passed"):
        cluster.barrier(1, sequence=2)


def test_two_barriers_may_be_open_at_once():
    cluster = Cluster().at(Phase.RUNNING)
    cluster.barrier(0, "a")
    cluster.barrier(1, "b")
    assert cluster.barrier(0, "b")["done"]
    assert cluster.barrier(1, "a")["done"]


def test_barriers_of_ever_new_names_do_not_pile_up():
    cluster = Cluster(checked=False).at(Phase.RUNNING)
    for step in range(3 * KEPT_BARRIERS):
        cluster.barrier(0, f"step {step}")
        assert cluster.barrier(1, f"step {step}")["done"]
    assert len(cluster.world.barriers) == KEPT_BARRIERS
    cluster.barrier(0, "step 0", sequence=2)
    assert cluster.barrier(1, "step 0", sequence=2)["done"]


def test_barrier_of_failed_world_tells_the_failure():
    cluster = Cluster().at(Phase.RUNNING)
    cluster.barrier(0)
    cluster.died(1)
    for index in range(2):
        answer = cluster.barrier(index, "b" if index == 0 else "new")
        assert (answer["done"], answer["failure"]) == (False, "process 1 on node00 died: signal 9")


def test_version_changes_with_phases_and_failures_not_with_every_join():
    cluster = Cluster()
    versions = []
    for index in range(8):
        cluster.join(index, 8)
        versions.append(cluster.state.version)
    assert versions == [2] * 7 + [3]
    cluster.died(3)
    assert cluster.state.version == 4


def test_watch_says_who_is_missing_and_for_how_long():
    cluster = Cluster().at(Phase.FORMING)
    (world,) = answers.watch_answer(cluster.state, cluster.now + 60.0)["worlds"]
    assert (world["phase"], world["awaited"], world["missing_count"]) == ("forming", "joined", 1)
    assert world["for_how_long_s"] == 60.0
    cluster.join(1)
    cluster.died(1, "signal 9", code=137)
    (world,) = answers.watch_answer(cluster.state, cluster.now)["worlds"]
    assert world["failure"] == "process 1 on node00 died: signal 9"
    assert world["failed"] == {"process_index": 1, "node": "node00", "code": 137, "at": cluster.now}


@pytest.mark.parametrize(
    ("job", "awaited"),
    [
        ({"purpose": "run", "nodes": ["node00", "node01", "node02"]}, (["node00", "node02"], 2, 3)),
        ({"purpose": "up", "nodes": ["node00", "node01"]}, (["node00"], 1, 2)),
        (
            {"purpose": "up", "nodes": [f"n{n}" for n in range(1000)]},
            (["n0", *(f"n{n}" for n in range(2, 21))], 999, 1000),
        ),
        ({"purpose": "tasks", "nodes": ["node00", "node01"]}, ([], 0, 0)),
        ({"id": "42"}, ([], 0, 0)),
        (None, ([], 0, 0)),
    ],
    ids=["run", "up", "many", "tasks", "another's Ray", "unknown"],
)
def test_watch_names_the_nodes_that_never_came(job, awaited):
    cluster = Cluster()
    cluster.state = cluster.state.model_copy(update={"job": job})
    cluster.do(events.NodeAdded(Node(node_rank=1, name="node01")))
    cluster.do(events.NodeLost(1, "no power"))
    found = answers.watch_answer(cluster.state, cluster.now)["awaited_nodes"]
    assert tuple(found.values()) == awaited


def test_watch_names_open_barriers():
    cluster = Cluster().at(Phase.RUNNING)
    cluster.barrier(1, "checkpoint")
    (world,) = answers.watch_answer(cluster.state, cluster.now + 5.0)["worlds"]
    (barrier,) = world["barriers"]
    assert (barrier["name"], barrier["for_how_long_s"], barrier["missing_count"]) == ("checkpoint", 5.0, 1)


def test_answers_are_json_and_the_state_survives_it():
    cluster = Cluster()
    cluster.do(events.NodeAdded(Node(node_rank=0, name="node00", ports={"gcs": 1})))
    cluster.at(Phase.RUNNING)
    cluster.barrier(0)
    cluster.died(1)
    json.dumps(answers.watch_answer(cluster.state, cluster.now))
    json.dumps(cluster.join(0))
    assert State.model_validate_json(cluster.state.model_dump_json()) == cluster.state


def test_worlds_that_are_over_do_not_pile_up():
    cluster = Cluster(checked=False).at(Phase.RUNNING)
    for number in range(KEPT_WORLDS + 10):
        name = f"launch {number}"
        cluster.join(0, 1, world=name)
        cluster.do(events.ProcessDied(name, 1, 0, "over"))
    assert len(cluster.state.worlds) == KEPT_WORLDS
    assert "main" in cluster.state.worlds
    assert "launch 0" not in cluster.state.worlds


def test_any_order_of_reports_keeps_the_invariants_and_refuses_only_in_words_of_eray():
    cluster, refused = Cluster().at(Phase.RUNNING), []
    for generation in (1, 2, 3):
        for index in (0, 1, 2, 9):
            for event in (
                events.Reported("main", generation, index, Stage.LEFT),
                events.BarrierEntered("main", generation, index, "b", 3),
                events.Published("main", generation, index, "h:1"),
                events.ProcessFailed("main", generation, index, "x"),
            ):
                try:
                    cluster.do(event)
                except ErayError as error:
                    refused.append(str(error))
    assert len(refused) > 20
    assert all(refused)


def test_thousand_processes_join_start_meet_and_leave_quickly():
    count = 1000
    cluster = Cluster(checked=False)
    started = time.perf_counter()
    requests = [request(index, count, per_node=8, gpus_on_node=8, visible=tuple("01234567")) for index in range(count)]
    for asked in requests:
        cluster.do(events.Joined(asked))
        answers.join_answer(cluster.state, asked)
    cluster.do(events.Published("main", 1, 0, "10.0.0.1:4000"))
    for stage in (Stage.DIALLED, Stage.RUNNING):
        for index in range(count):
            cluster.report(index, stage)
    for index in range(count):
        cluster.barrier(index)
    for index in range(count):
        cluster.report(index, Stage.LEFT)
    assert time.perf_counter() - started < 3.0
    assert cluster.world.phase == Phase.CLOSED
    check(cluster.state)
    assert len(answers.join_answer(cluster.state, requests[0])["missing"]) == 0


@pytest.mark.parametrize(
    ("missing", "count", "text"),
    [
        ([], 0, "no process"),
        ([(3, "n2")], 1, "process 3 (n2)"),
        ([(3, None)], 1, "process 3"),
        ([(3, "n2"), (7, "n2")], 2, "processes 3 and 7 (n2)"),
        ([(3, "n2"), (9, None), (7, "n2"), (8, "n4")], 4, "processes 3 and 7 (n2), 8 (n4), 9"),
        ([(0, "a"), (1, "a"), (2, "a"), (3, "a"), (5, "a")], 5, "processes 0-3 and 5 (a)"),
        ([(0, None)], 7, "processes 0 and 6 more"),
    ],
)
def test_missing_processes_are_named_by_node(missing, count, text):
    entries = [{"process_index": index, "node": node, "state": "absent"} for index, node in missing]
    assert name_missing(entries, count) == text


def test_missing_process_that_left_is_said_to_have_left():
    assert name_missing([{"process_index": 1, "node": "n1", "state": "left"}]) == "process 1 (n1, left)"


def life(jumps):
    """Return the answers of one world's life, under a clock that jumps before each event."""
    cluster, found = Cluster(checked=False), []
    steps = (
        lambda: cluster.join(0),
        lambda: cluster.join(1),
        lambda: cluster.barrier(0),
        lambda: cluster.barrier(1),
        lambda: cluster.report(0, Stage.RUNNING),
        lambda: cluster.report(1, Stage.RUNNING),
        lambda: cluster.barrier(0, sequence=2),
        lambda: cluster.died(1),
    )
    for index, step in enumerate(steps):
        cluster.now += jumps[index % len(jumps)]
        step()
        (summary,) = answers.watch_answer(cluster.state, cluster.now)["worlds"]
        assert summary.pop("for_how_long_s") >= 0
        assert all(barrier.pop("for_how_long_s") >= 0 for barrier in summary["barriers"])
        if summary["failed"]:
            del summary["failed"]["at"]
        found.append((summary, answers.stage_answer(cluster.state, "main", 1, 0, Stage.RUNNING)))
    return found


@pytest.mark.parametrize(
    "jumps", [(36_000.0,), (-36_000.0,), (-36_000.0, 36_000.0), (1e9, -1e9, 0.0)], ids=["on", "back", "both", "far"]
)
def test_clock_that_jumps_changes_no_answer(jumps):
    assert life(jumps) == life((0.0,))


def test_next_generation_remembers_why_and_when_the_last_one_ended():
    cluster = Cluster().at(Phase.RUNNING)
    cluster.died(1, "was killed (SIGKILL, 137)", code=137)
    failed_at = cluster.now
    cluster.do(events.WorldDeclared("main", 1, generation=2))
    (restart,) = answers.picture(cluster.state).world("main").restarts
    assert (restart.generation, restart.process_count, restart.process_index, restart.code) == (1, 2, 1, 137)
    assert (restart.failed_at, restart.restarted_at) == (failed_at, cluster.now)
    assert "was killed" in restart.cause


def test_restarts_are_kept_by_joins_too_and_forgotten_after_an_orderly_end():
    cluster = Cluster().at(Phase.RUNNING)
    cluster.died(0)
    cluster.join(0, 1, generation=2, join_id="second")
    assert [each.generation for each in cluster.world.restarts] == [1]
    cluster = Cluster().at(Phase.CLOSED)
    cluster.join(0, 2, join_id="another run")
    assert cluster.world.generation == 2
    assert cluster.world.restarts == ()
