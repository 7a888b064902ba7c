import random

import pytest

from eray._core.lives import Await, Doing, GiveUp, Lives, Rule, Start, Stop


def lives(max_restarts=1, nodes=(0, 1, 2), **rule):
    return Lives.first(Rule(max_restarts, **rule), nodes)


def nodes(*ranks):
    return frozenset(ranks)


def test_failure_without_restarts_gives_up_with_its_cause_and_code():
    after, told = lives(0).failed(1, "process 1 died", 137, 5.0)
    assert told == (GiveUp("process 1 died", 137),)
    assert after.doing is Doing.OVER


@pytest.mark.parametrize("code", [2, 3])
def test_failure_that_would_come_again_is_not_tried_again(code):
    _, told = lives(5).failed(1, "a bad setting", code, 5.0)
    assert told == (GiveUp("a bad setting", code),)


def test_restart_starts_only_when_every_node_has_stopped():
    after, told = lives().failed(1, "process 1 died", 137, 5.0)
    assert told == (Stop(nodes(0, 1, 2), "process 1 died", 137),)
    for rank in (0, 2):
        after, told = after.stopped(rank)
        assert told == ()
    after, told = after.stopped(1)
    assert told == (Start(2, nodes(0, 1, 2)),)
    assert (after.generation, after.used, after.doing) == (2, 1, Doing.RUNNING)


def test_second_cause_and_news_of_an_earlier_generation_change_nothing():
    after, _ = lives(9).failed(1, "first", 1, 5.0)
    assert after.failed(1, "second", 1, 5.0) == (after, ())
    for rank in range(3):
        after, _ = after.stopped(rank)
    assert after.failed(1, "late", 1, 6.0) == (after, ())


def test_lost_node_is_not_awaited_and_gets_no_processes():
    after, _ = lives().failed(1, "node 1 is lost", 4, 5.0)
    after, _ = after.node_lost(1)
    after, _ = after.stopped(0)
    after, told = after.stopped(2)
    assert told == (Start(2, nodes(0, 2)),)


def test_node_that_came_back_takes_part_in_the_next_generation_only():
    after, _ = lives(2).failed(1, "node 1 is lost", 4, 5.0)
    after, _ = after.node_lost(1)
    after, _ = after.stopped(0)
    after, _ = after.stopped(2)
    after, told = after.node_came(1)
    assert (told, after.taking) == ((), nodes(0, 2))
    after, told = after.failed(2, "process 0 died", 137, 9.0)
    assert told == (Stop(nodes(0, 2), "process 0 died", 137),)
    after, _ = after.stopped(0)
    after, told = after.stopped(2)
    assert told == (Start(3, nodes(0, 1, 2)),)


def test_too_few_nodes_are_awaited_and_start_when_one_comes():
    after, _ = lives(min_nodes=3).failed(1, "node 1 is lost", 4, 5.0)
    after, _ = after.node_lost(1)
    after, _ = after.stopped(0)
    after, told = after.stopped(2)
    assert told == (Await(2, 3),)
    gone, told = after.overdue()
    assert told == (
        GiveUp("node 1 is lost; the world is not started again: 2 of the 3 nodes that it needs are left", 4),
    )
    after, told = after.node_came(1)
    assert told == (Start(2, nodes(0, 1, 2)),)
    assert after.overdue() == (after, ())
    assert gone.doing is Doing.OVER


def restarted(state, now):
    state, told = state.failed(state.generation, "again", 1, now)
    if isinstance(told[0], GiveUp):
        return state, False
    for rank in tuple(state.stopping):
        state, told = state.stopped(rank)
    assert isinstance(told[0], Start)
    return state, True


def test_budget_refills_after_a_healthy_period_and_not_before():
    state, went_on = restarted(lives(1, healthy_s=100.0), 0.0)
    state = state.runs(2, 10.0)
    assert went_on
    assert not restarted(state, 109.0)[1]
    state, went_on = restarted(state, 110.0)
    assert went_on
    assert state.ran_since is None, "the next life has to be healthy itself"
    assert not restarted(state, 1000.0)[1], "it never ran"


@pytest.mark.parametrize("seed", range(40))
def test_random_losses_always_end_in_one_generation_at_a_time(seed):
    chance = random.Random(seed)
    state, now, started = lives(3, range(4), min_nodes=2), 0.0, [1]
    alive = set(range(4))
    for _ in range(200):
        now += 1.0
        event = chance.choice(["fail", "lose", "come", "stop", "run", "stop"])
        rank, told = chance.randrange(1, 4), ()
        if event == "fail":
            state, told = state.failed(chance.choice(started), "x", chance.choice([1, 137, 4]), now)
        elif event == "lose":
            if rank in state.taking:
                state, told = state.failed(state.generation, "lost", 4, now)
            state, more = state.node_lost(rank)
            alive.discard(rank)
            told += more
        elif event == "come":
            alive.add(rank)
            state, told = state.node_came(rank)
        elif event == "stop" and state.stopping:
            state, told = state.stopped(chance.choice(sorted(state.stopping)))
        elif event == "run":
            state = state.runs(state.generation, now)
        for one in told:
            if isinstance(one, Start):
                assert one.generation == started[-1] + 1
                assert one.nodes == alive
                assert not state.stopping
                started.append(one.generation)
        assert state.stopping <= state.there == alive
    while state.doing is Doing.STOPPING:
        state, _ = state.stopped(min(state.stopping))
    if state.doing is Doing.WAITING:
        state, _ = state.overdue()
        assert state.doing is Doing.OVER
    assert len(started) <= 1 + 3, "no healthy period, so the budget holds"
