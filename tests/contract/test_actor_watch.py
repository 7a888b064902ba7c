"""How the coordinator hears of the death of the user's own actors when they are many: a watcher on their node."""

import os
import signal
import time

import pytest
import ray
from ray._private import state  # Ray's public list of actors needs its dashboard
from test_coordinator_contract import request

from eray._core.naming import NAMESPACE
from eray._ray.actor_watch import WATCHED_HERE, watch_own_actor
from eray._ray.client import CoordinatorClient
from eray._ray.creation import create_coordinator

pytestmark = pytest.mark.ray
OTHERS, LONG_S = 3, 30.0
COUNT = WATCHED_HERE + OTHERS


@ray.remote(num_cpus=0, max_restarts=0)
class Member:
    """One of the user's own actors."""

    def pid(self):
        return os.getpid()

    def is_watched(self, coordinator, asked):
        for each in asked:
            watch_own_actor(coordinator, each)


def watchers():
    """Return the pids of those that run."""
    actors = state.state.actor_table(None).values()
    return [each["Pid"] for each in actors if each["ActorClassName"] == "NodeWatcher" and each["State"] == "ALIVE"]


def until(found, what):
    ends = time.monotonic() + 20.0
    while time.monotonic() < ends:
        if answer := found():
            return answer
        time.sleep(0.05)
    raise AssertionError(what)


@pytest.fixture
def handle(local_ray):
    node_id = ray.get_runtime_context().get_node_id()
    handle = create_coordinator(node_id=node_id, namespace=NAMESPACE, name="watching", snapshot_path=None, job={})
    yield handle
    ray.kill(handle)


@pytest.fixture
def members(handle):
    """Two actors in a world of more processes than the coordinator asks itself: the second is the last of them."""
    members = [Member.remote(), Member.remote()]
    pids = ray.get([member.pid.remote() for member in members])
    of = [0] * (COUNT - 1) + [1]
    asked = [request("own", index, COUNT, pid=pids[of[index]]) for index in range(COUNT)]
    ray.get(members[0].is_watched.remote(handle, asked[:-1]))
    ray.get(members[1].is_watched.remote(handle, asked[-1:]))
    ray.get([handle.join.remote(each, LONG_S) for each in asked])
    yield members, pids
    for member in members:
        ray.kill(member)


def failure(handle):
    return CoordinatorClient(handle).topology().world("own").failure


def test_death_of_an_actor_that_a_watcher_asks_is_known(handle, members):
    os.kill(members[1][1], signal.SIGKILL)
    found = until(lambda: failure(handle), "the coordinator hears nothing")
    assert found.startswith(f"process {COUNT - 1} ")
    assert f"its actor's process (pid {members[1][1]}) is gone" in found
    assert len(watchers()) == 1


def test_watcher_that_is_gone_itself_is_no_death_of_an_actor(handle, members):
    (watcher,) = until(watchers, "there is no watcher")
    os.kill(watcher, signal.SIGKILL)
    until(lambda: not watchers(), "the watcher stays")
    assert failure(handle) is None
    os.kill(members[1][1], signal.SIGKILL)
    assert f"(pid {members[1][1]}) is gone" in until(lambda: failure(handle), "the coordinator hears nothing")


def test_watched_actor_ends_with_the_last_handle_of_its_owner(handle, members):
    del members[0][1]
    found = until(lambda: failure(handle), "the actor lives on")
    assert f"(pid {members[1][1]}) is gone" in found


def test_watcher_ends_when_all_have_left(handle, members):
    until(watchers, "there is no watcher")
    told = ray.get([handle.report.remote("own", 1, index, "left") for index in range(COUNT)])
    assert [each for each in told if each.get("error")] == []
    until(lambda: not watchers(), "the watcher stays")
