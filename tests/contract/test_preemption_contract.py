"""A preemption as every caller of the coordinator sees it, against the in-process fake and the real actor."""

import json
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial

import pytest
from test_coordinator_contract import LONG_S, SOON_S, join_all, request

from eray._ray.client import SavePoint
from eray.errors import JoinTimeoutError, NotJoinedError, StaleGenerationError, UsageError, WorldFailedError


@pytest.fixture(scope="module")
def together():
    """Return a function that runs calls at once, as processes do, and returns their futures."""
    with ThreadPoolExecutor(16) as pool:
        yield lambda *calls: [pool.submit(call) for call in calls]


def agree(client, together, world, steps, *, timeout_s=LONG_S):
    calls = [
        partial(client.agree_to_save, world, 1, index, step, timeout_s=timeout_s) for index, step in enumerate(steps)
    ]
    return [future.result() for future in together(*calls)]


def test_warning_is_seen_by_all_and_the_first_reason_is_kept(make_actor, together, world):
    actor = make_actor()
    client = actor.client
    join_all(client, together, world)
    version = client.watch(0, wait_s=5.0)["version"]
    assert client.topology().preemption is None
    following = together(*[partial(client.follow, world, 1, index, warned=False) for index in range(2)])
    (watching,) = together(partial(client.watch, version, wait_s=LONG_S))
    wait([*following, watching], timeout=SOON_S)
    assert not any(future.done() for future in (*following, watching))
    client.warn("SIGUSR1 at node01")
    assert [future.result() for future in following] == ["SIGUSR1 at node01"] * 2
    assert watching.result()["preemption"]["reason"] == "SIGUSR1 at node01"
    client.warn("SIGUSR1 at node02")
    assert client.topology().preemption.reason == "SIGUSR1 at node01"


def test_warning_holds_for_later_worlds_and_after_the_actors_death(make_actor, together, world):
    actor = make_actor()
    actor.client.warn("SIGUSR1 at node01")
    at = actor.client.topology().preemption.at
    actor.kill()
    join_all(actor.client, together, world)
    assert actor.client.follow(world, 1, 0, warned=False) == "SIGUSR1 at node01"
    assert actor.client.topology().preemption.at == at


def test_process_that_was_warned_before_the_coordinator_sees_it_in_the_topology(make_actor):
    client = make_actor().client
    assert client.topology_of(None).preemption is None
    assert client.topology_of("SIGUSR1 at node01").preemption.reason == "SIGUSR1 at node01"
    assert client.topology_of("SIGUSR2 at node02").preemption.reason == "SIGUSR1 at node01"
    assert client.topology_of(None).preemption.reason == "SIGUSR1 at node01"


def test_warning_without_a_reason_is_refused(client):
    with pytest.raises(UsageError):
        client.warn("")


def test_follower_hears_of_a_failure_and_of_its_next_life(make_actor, together, world):
    client = make_actor().client
    join_all(client, together, world)
    client.warn("SIGUSR1 at node01")
    (following,) = together(partial(client.follow, world, 1, 0, warned=True))
    wait([following], timeout=SOON_S)
    assert not following.done()
    client.died(world, 1, 1, "signal 9 (killed)", 137)
    with pytest.raises(WorldFailedError, match=r"process 1 on node00 died: signal 9 \(killed\)"):
        following.result()
    client.declare_world(world, 2)
    with pytest.raises(StaleGenerationError):
        client.follow(world, 1, 0, warned=True)


@pytest.mark.parametrize(
    ("steps", "after"), [((7, 9, 8), 9), ((None, 3, None), 3), ((None, None, None), None), ((0, 0, 0), 0)]
)
def test_processes_agree_on_the_step_after_the_last(client, together, world, steps, after):
    join_all(client, together, world, 3)
    assert agree(client, together, world, steps) == [SavePoint(after)] * 3


def test_agreement_waits_for_the_last_and_keeps_what_was_told_first(client, together, world):
    join_all(client, together, world)
    (first,) = together(partial(client.agree_to_save, world, 1, 0, 4, timeout_s=LONG_S))
    wait([first], timeout=SOON_S)
    assert not first.done()
    assert client.agree_to_save(world, 1, 1, 3, timeout_s=LONG_S) == SavePoint(4)
    assert first.result() == SavePoint(4)
    assert client.agree_to_save(world, 1, 0, 900, timeout_s=LONG_S) == SavePoint(4)  # asked again after a lost answer


def test_agreement_of_a_world_of_one(client, together, world):
    join_all(client, together, world, 1)
    assert agree(client, together, world, [12]) == [SavePoint(12)]


def test_agreement_that_is_given_up_holds_for_those_who_come_late(client, together, world):
    join_all(client, together, world)
    with pytest.raises(JoinTimeoutError, match=r"process 1 \(node00\) did not tell its step within 0.3 s"):
        client.agree_to_save(world, 1, 0, 4, timeout_s=SOON_S)
    with pytest.raises(JoinTimeoutError, match="did not tell its step"):
        client.agree_to_save(world, 1, 1, 4, timeout_s=LONG_S)


def test_agreement_with_a_process_that_leaves_without_a_word_has_no_step(client, together, world):
    join_all(client, together, world)
    for index in range(2):
        client.report(world, 1, index, "running")
    (waiting,) = together(partial(client.agree_to_save, world, 1, 0, 4, timeout_s=LONG_S))
    wait([waiting], timeout=SOON_S)
    client.report(world, 1, 1, "left")
    assert waiting.result() is None


def test_agreement_outlives_a_process_that_told_and_left(client, together, world):
    join_all(client, together, world)
    for index in range(2):
        client.report(world, 1, index, "running")
    (waiting,) = together(partial(client.agree_to_save, world, 1, 1, 8, timeout_s=LONG_S))
    wait([waiting], timeout=SOON_S)
    client.report(world, 1, 1, "left")
    assert client.agree_to_save(world, 1, 0, 4, timeout_s=LONG_S) == SavePoint(8)
    assert waiting.result() == SavePoint(8)


def test_agreement_ends_with_the_failure_of_the_world(client, together, world):
    join_all(client, together, world)
    (waiting,) = together(partial(client.agree_to_save, world, 1, 0, 4, timeout_s=LONG_S))
    wait([waiting], timeout=SOON_S)
    client.died(world, 1, 1, "signal 9 (killed)", 137)
    with pytest.raises(WorldFailedError):
        waiting.result()


def test_agreement_survives_the_actors_death(make_actor, together, world):
    actor = make_actor()
    join_all(actor.client, together, world)
    (waiting,) = together(partial(actor.client.agree_to_save, world, 1, 0, 4, timeout_s=LONG_S))
    wait([waiting], timeout=SOON_S)
    actor.kill()
    assert actor.client.agree_to_save(world, 1, 1, 5, timeout_s=LONG_S) == SavePoint(5)
    assert waiting.result() == SavePoint(5)
    saved = json.loads(actor.snapshot_path.read_text())["worlds"][world]["saving"]
    assert (sorted(saved["heard"]), saved["last"]) == ([0, 1], 5)


def test_agreement_is_new_in_the_next_generation(client, together, world):
    join_all(client, together, world)
    assert agree(client, together, world, [4, 4]) == [SavePoint(4)] * 2
    client.died(world, 1, 1, "signal 9 (killed)", 137)
    client.declare_world(world, 2)
    calls = [
        partial(client.join, request(world, index, generation=2, join_id=f"{world}-{index}-2"), timeout_s=LONG_S)
        for index in range(2)
    ]
    assert {future.result().generation for future in together(*calls)} == {2}
    calls = [partial(client.agree_to_save, world, 2, index, None, timeout_s=LONG_S) for index in range(2)]
    assert [future.result() for future in together(*calls)] == [SavePoint(None)] * 2


def test_step_of_a_stranger_is_refused(client, world):
    with pytest.raises(NotJoinedError):
        client.agree_to_save(world, 1, 0, 4, timeout_s=LONG_S)
    with pytest.raises(NotJoinedError):
        client.follow(world, 1, 0, warned=False)
