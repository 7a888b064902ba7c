"""The coordinator is killed at each point of a join, and once more later: the world completes, as it was planned."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from test_coordinator_contract import request

from eray.errors import WorldFailedError

COUNT = 3
LONG_S = 40.0
ADDRESS = "10.0.0.1:4000"
RARE = pytest.mark.full
POINTS = [
    ("joining", 0),  # before anyone has joined
    ("joining", 2),  # the last one, when the others have
    ("joined", 0),  # planned, and no address yet
    pytest.param("joined", 1, marks=RARE),
    ("published", 0),
    pytest.param("dialled", 1, marks=RARE),
    pytest.param("initialised", 0, marks=RARE),
    ("initialised", 2),
    pytest.param("running", 1, marks=RARE),
    ("entering", 2),  # the last one of a barrier
    pytest.param("passed", 0, marks=RARE),
    ("left", 1),  # while the others leave
]


class Life:
    """The processes of one world, each in a thread: at ``point`` process ``index`` kills the coordinator first."""

    def __init__(self, actor, world, point, index):
        self._actor, self._client, self._world = actor, actor.client, world
        self._fatal = (point, index)
        self._killed = threading.Event()
        self.planned = None

    def run(self):
        """Return the answers of all joins, by process_index."""
        with ThreadPoolExecutor(COUNT) as pool:
            return list(pool.map(self._process, range(COUNT)))

    def _process(self, index):
        world, client = self._world, self._client
        self._at("joining", index)
        place = client.join(request(world, index, COUNT, visible=["4", "5", "6"], gpus_on_node=3), timeout_s=LONG_S)
        me = (world, place.generation, index)
        self._at("joined", index)
        if index == 0:
            client.publish(*me, ADDRESS)
            self._at("published", index)
        else:
            assert client.await_address(*me, timeout_s=LONG_S) == ADDRESS
        for stage in ("dialled", "initialised", "running"):
            client.report(*me, stage)
            self._at(stage, index)
        client.await_stage(*me, "running", timeout_s=LONG_S)
        self._at("entering", index)
        client.barrier(*me, "step", 1, timeout_s=LONG_S)
        self._at("passed", index)
        client.report(*me, "left")
        self._at("left", index)
        client.await_stage(*me, "left", timeout_s=LONG_S)
        return place

    def _at(self, point, index):
        if (point, index) != self._fatal:
            return
        self._await_others(point)
        self.planned = self._picture()
        self._actor.kill()

    def _await_others(self, point):
        """Wait until the other processes stand where the name of the point says."""
        until = time.monotonic() + LONG_S
        while time.monotonic() < until:
            answer = self._client.watch(0, wait_s=0)
            mine = next((each for each in answer["worlds"] if each["name"] == self._world), None)
            if point == "joining" and self._fatal[1] == COUNT - 1:
                there = mine is not None and mine["missing_count"] == 1
            elif point == "entering":
                there = mine is not None and [each["missing_count"] for each in mine["barriers"]] == [1]
            else:
                return
            if there:
                return
            time.sleep(0.01)
        raise AssertionError(f"the others did not come to {point}")

    def _picture(self):
        world = self._client.topology().world(self._world)
        planned = world is not None and str(world.phase) not in ("forming",)
        return (
            {each.process_index: (each.local_index, each.local_device_ids) for each in world.processes}
            if planned
            else {}
        )


@pytest.mark.parametrize(("point", "index"), POINTS)
def test_world_completes_when_the_coordinator_dies(make_actor, world, point, index):
    actor = make_actor()
    epoch = actor.client.ping()["epoch"]
    life = Life(actor, world, point, index)
    places = life.run()
    assert [place.local_device_ids for place in places] == [(0,), (1,), (2,)]
    assert {place.generation for place in places} == {1}
    assert actor.client.ping()["epoch"] == epoch + 1
    seen = actor.client.topology().world(world)
    assert (str(seen.phase), seen.generation, seen.coordinator_address) == ("closed", 1, ADDRESS)
    after = {each.process_index: (each.local_index, each.local_device_ids) for each in seen.processes}
    assert life.planned in ({}, after), "a plan that was made stays"


def test_failure_is_known_after_the_coordinators_death(make_actor, world):
    actor = make_actor()
    with ThreadPoolExecutor(2) as pool:
        joins = [pool.submit(actor.client.join, request(world, each), timeout_s=LONG_S) for each in range(2)]
        assert all(join.result() for join in joins)
        actor.client.died(world, 1, 1, "was killed", 137)
        actor.kill()
        with pytest.raises(WorldFailedError, match="process 1 on node00 died: was killed"):
            actor.client.await_stage(world, 1, 0, "running", timeout_s=LONG_S)
        actor.client.declare_world(world, 1, generation=2)
        actor.kill()
        (restart,) = actor.client.topology().world(world).restarts
        assert (restart.process_index, restart.code) == (1, 137)
