"""What every caller of the coordinator may rely on, against the in-process fake and the real actor."""

import json
import stat
import time
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial

import pytest

from eray._core.topology import Device, Node, Topology
from eray.errors import (
    BarrierTimeoutError,
    DevicePlanError,
    DuplicateProcessError,
    JoinTimeoutError,
    NodesMissingError,
    NotJoinedError,
    StaleGenerationError,
    UsageError,
    WorldContradictionError,
    WorldFailedError,
)

SOON_S = 0.3  # a wait that ends without what it waits for
LONG_S = 25.0  # a wait that ends by what it waits for


def request(world, index, count=2, *, generation=None, join_id=None, **facts):
    defaults = {
        "node": "node00",
        "node_rank": 0,
        "hostname": "node00.site",
        "local_index": index,
        "local_count": count,
        "pid": 100 + index,
        "visible": None,
        "uuids": None,
        "gpus_on_node": None,
        "hardware_count": None,
        "in_step": True,
        "override": None,
        "expected_devices": None,
    }
    return {
        "world": world,
        "generation": generation,
        "process_index": index,
        "process_count": count,
        "join_id": join_id or f"{world}-{index}",
        "facts": defaults | facts,
    }


@pytest.fixture(scope="module")
def together():
    """Return a function that runs calls at once, as processes do, and returns their futures."""
    with ThreadPoolExecutor(32) as pool:
        yield lambda *calls: [pool.submit(call) for call in calls]


def join_all(client, together, world, count=2, **changes):
    """Join all processes of a world and return their answers."""
    calls = [partial(client.join, request(world, index, count, **changes), timeout_s=LONG_S) for index in range(count)]
    return [future.result() for future in together(*calls)]


def test_join_returns_each_process_its_own_place(client, together, world):
    answers = join_all(client, together, world, 4, visible=["7", "6", "GPU-a", "MIG-b"][:2], gpus_on_node=8)
    assert [answer.process_index for answer in answers] == [0, 1, 2, 3]
    assert {(a.phase, a.generation, a.process_count, a.node_rank) for a in answers} == {("planned", 1, 4, 0)}
    assert [answer.local_index for answer in answers] == [0, 1, 2, 3]
    assert {answer.local_device_ids for answer in answers} == {(0, 1)}
    assert {answer.device_rule for answer in answers} == {"own-bound"}


def test_join_tells_meanwhile_and_at_the_end_who_is_missing(client, world):
    client.declare_world(world, 2, layout=[(0, 0, 1, "node00"), (1, 0, 1, "node01")])
    started = time.monotonic()
    with pytest.raises(JoinTimeoutError, match=r"process 1 \(node01\) did not join within 0.3 s"):
        client.join(request(world, 0), timeout_s=SOON_S)
    assert SOON_S <= time.monotonic() - started < 5.0


def test_join_wakes_at_once_when_the_last_one_comes(client, together, world):
    (first,) = together(lambda: client.join(request(world, 0), timeout_s=LONG_S))
    wait([first], timeout=SOON_S)
    assert not first.done()
    started = time.monotonic()
    client.join(request(world, 1), timeout_s=LONG_S)
    assert first.result().process_index == 0
    assert time.monotonic() - started < 2.0


def test_join_asked_again_gives_the_same_answer(client, together, world):
    answers = join_all(client, together, world)
    assert client.join(request(world, 1), timeout_s=LONG_S) == answers[1]


def test_join_of_a_taken_index_names_both_processes(client, together, world):
    join_all(client, together, world)
    with pytest.raises(DuplicateProcessError, match=r"pid 101 on node00\.site, and pid 9 on node03"):
        client.join(request(world, 1, join_id="x", pid=9, hostname="node03"), timeout_s=LONG_S)


def test_join_with_another_process_count_names_both_values(client, together, world):
    join_all(client, together, world)
    with pytest.raises(WorldContradictionError, match="process_count is 2, but 5"):
        client.join(request(world, 4, 5), timeout_s=LONG_S)


def test_join_of_an_earlier_generation_is_refused(client, world):
    client.declare_world(world, 2, generation=3)
    with pytest.raises(StaleGenerationError) as caught:
        client.join(request(world, 0, generation=2), timeout_s=LONG_S)
    assert (caught.value.generation, caught.value.current) == (2, 3)


def test_join_of_devices_that_cannot_be_divided_raises_the_plan_error_in_all(client, together, world):
    asked = [request(world, index, 3, visible=["0", "1"], gpus_on_node=2) for index in range(3)]
    calls = [partial(client.join, one, timeout_s=LONG_S) for one in asked]
    errors = [future.exception() for future in together(*calls)]
    assert [type(error) for error in errors] == [DevicePlanError] * 3
    assert {error.node for error in errors} == {"node00"}
    assert client.topology().world(world).phase == "failed"


@pytest.mark.parametrize(
    "change", [{"process_index": -1}, {"process_index": 2}, {"facts": {"pid": 1}}, {"join_id": ""}, {"world": ""}]
)
def test_join_request_that_makes_no_sense_is_a_usage_error(client, world, change):
    with pytest.raises(UsageError):
        client.join(request(world, 0) | change, timeout_s=LONG_S)


def test_new_generation_opens_when_all_have_left(client, together, world):
    join_all(client, together, world)
    for index in range(2):
        client.report(world, 1, index, "running")
    client.report(world, 1, 0, "left")
    (waiting,) = together(lambda: client.join(request(world, 0, join_id="again"), timeout_s=LONG_S))
    wait([waiting], timeout=SOON_S)
    client.report(world, 1, 1, "left")
    client.await_stage(world, 1, 0, "left", timeout_s=LONG_S)
    second = client.join(request(world, 1, join_id="again too"), timeout_s=LONG_S)
    assert (second.generation, waiting.result().generation) == (2, 2)


def test_address_reaches_those_who_wait_for_it(client, together, world):
    join_all(client, together, world)
    with pytest.raises(JoinTimeoutError, match=r"process 0 \(node00\) did not publish"):
        client.await_address(world, 1, 1, timeout_s=SOON_S)
    (address,) = together(lambda: client.await_address(world, 1, 1, timeout_s=LONG_S))
    client.publish(world, 1, 0, "10.0.0.1:4000")
    assert address.result() == "10.0.0.1:4000"
    assert client.topology().world(world).coordinator_address == "10.0.0.1:4000"


def test_await_stage_polls_until_the_last_one_is_there(client, together, world):
    join_all(client, together, world)
    client.report(world, 1, 0, "running")
    with pytest.raises(JoinTimeoutError, match=r"process 1 \(node00\) did not get running"):
        client.await_stage(world, 1, 0, "running", timeout_s=SOON_S)
    (running,) = together(lambda: client.await_stage(world, 1, 0, "running", timeout_s=LONG_S))
    client.report(world, 1, 1, "initialised")
    wait([running], timeout=SOON_S)
    assert not running.done()
    client.report(world, 1, 1, "running")
    assert running.result() is None


def test_barrier_names_who_is_missing_and_opens_for_all(client, together, world):
    join_all(client, together, world, 4)
    with pytest.raises(BarrierTimeoutError, match=r"'save': processes 1-3 \(node00\) did not arrive within 0.3 s"):
        client.barrier(world, 1, 0, "save", 1, timeout_s=SOON_S)
    for sequence in (1, 2):
        calls = [partial(client.barrier, world, 1, index, "save", sequence, timeout_s=LONG_S) for index in range(4)]
        assert [future.result() for future in together(*calls)] == [None] * 4


def test_waiter_says_who_it_waits_for(client, together, world, monkeypatch):
    monkeypatch.setattr("eray._core.timing.POLL_S", 0.1)
    monkeypatch.setattr("eray._core.timing.FIRST_POLL_S", 0.1)
    join_all(client, together, world)
    said = []
    with pytest.raises(BarrierTimeoutError):
        client.barrier(world, 1, 0, "save", 1, timeout_s=0.5, progress=said.append)
    assert set(said) == {"barrier 'save': waiting for process 1 (node00)"}


def test_death_wakes_everyone_with_the_first_cause(client, together, world):
    join_all(client, together, world, 3)
    waiting = together(
        lambda: client.barrier(world, 1, 0, "save", 1, timeout_s=LONG_S),
        lambda: client.await_stage(world, 1, 1, "running", timeout_s=LONG_S),
    )
    wait(waiting, timeout=SOON_S)
    client.died(world, 1, 2, "signal 9 (killed)", 137)
    client.report(world, 1, 0, "failed", "heartbeat lost")
    for future in waiting:
        with pytest.raises(WorldFailedError, match=r"process 2 on node00 died: signal 9 \(killed\)"):
            future.result()


def test_report_of_a_stranger_is_refused(client, together, world):
    with pytest.raises(NotJoinedError):
        client.report(world, 1, 0, "running")
    join_all(client, together, world)
    with pytest.raises(UsageError, match="asleep"):
        client.report(world, 1, 0, "asleep")


def test_watch_returns_when_something_changes(client, together, world):
    version = client.watch(0, wait_s=5.0)["version"]
    assert client.watch(version, wait_s=SOON_S)["version"] == version
    (watching,) = together(lambda: client.watch(version, wait_s=LONG_S))
    client.declare_world(world, 2, layout=[(0, 0, 1, "node00"), (1, 0, 1, "node01")])
    seen = watching.result()
    assert seen["version"] > version
    (summary,) = [item for item in seen["worlds"] if item["name"] == world]
    assert (summary["phase"], summary["generation"], summary["failure"]) == ("forming", 1, None)
    assert [entry["node"] for entry in summary["missing"]] == ["node00", "node01"]
    assert 0.0 <= summary["for_how_long_s"] < 10.0


def test_topology_has_nodes_devices_and_processes(client, together, world):
    device = Device(ordinal=0, token="GPU-8f3c", kind="H200", platform="cuda")
    node = Node(node_rank=0, name="node00", hostname="node00.site", devices=(device,), cpus=8, ports={"gcs": 4001})
    client.add_node(node)
    join_all(client, together, world)
    topology = client.topology()
    assert isinstance(topology, Topology)
    assert (topology.job["id"], topology.head, topology.nodes) == ("42", "node00", (node,))
    assert [process.state for process in topology.world(world).processes] == ["joined", "joined"]
    assert [phase for phase, _ in topology.world(world).timeline] == ["forming", "planned"]


def test_found_nodes_take_ranks_and_keep_them(make_actor):
    client = make_actor().client
    client.add_node(Node(node_rank=0, name="node00", ray_node_id="a"))

    def found(name, ray_node_id):
        node = client.find_node({"name": name, "ray_node_id": ray_node_id})
        return node["node_rank"], node["name"]

    assert found("10.0.0.1", "a") == (0, "node00")  # known by another name
    assert found("10.0.0.2", "b") == (1, "10.0.0.2")
    assert found("10.0.0.3", "c") == (2, "10.0.0.3")
    assert found("10.0.0.2", "b") == (1, "10.0.0.2")
    assert found("10.0.0.2", "d") == (1, "10.0.0.2")  # its Ray was started again
    assert [node.ray_node_id for node in client.topology().nodes] == ["a", "d", "c"]


def test_lost_node_fails_its_worlds(make_actor, together, world):
    client = make_actor().client
    client.add_node(Node(node_rank=0, name="node00"))
    join_all(client, together, world)
    client.lose_node(0, "no heartbeat for 5 s")
    topology = client.topology()
    assert not topology.nodes[0].alive
    assert topology.world(world).failure == "node node00 was lost: no heartbeat for 5 s"


def test_many_processes_meet(client, together, world):
    count = 24
    assert len(join_all(client, together, world, count)) == count
    calls = [partial(client.barrier, world, 1, index, "all", 1, timeout_s=LONG_S) for index in range(count)]
    assert all(future.result() is None for future in together(*calls))


def test_killed_actor_comes_back_with_its_state_and_a_higher_epoch(make_actor, together, world):
    actor = make_actor()
    client = actor.client
    join_all(client, together, world)
    client.publish(world, 1, 0, "10.0.0.1:4000")
    before, topology = client.ping(), client.topology()
    (waiting,) = together(lambda: client.barrier(world, 1, 0, "save", 1, timeout_s=LONG_S))
    wait([waiting], timeout=SOON_S)
    actor.kill()
    after = client.ping()
    assert after["epoch"] == before["epoch"] + 1
    assert client.topology() == topology.model_copy(update={"epoch": after["epoch"]})
    client.barrier(world, 1, 1, "save", 1, timeout_s=LONG_S)
    assert waiting.result() is None
    actor.kill()
    assert client.ping()["epoch"] == before["epoch"] + 2


def test_snapshot_is_private_and_holds_what_was_accepted(make_actor, together, world):
    actor = make_actor()
    join_all(actor.client, together, world)
    assert stat.S_IMODE(actor.snapshot_path.stat().st_mode) == 0o600
    assert json.loads(actor.snapshot_path.read_text())["worlds"][world]["planned"] is True
    assert [path.name for path in actor.snapshot_path.parent.iterdir()] == [actor.snapshot_path.name]


def test_coordinator_serves_on_when_its_disk_does_not(make_actor, together, world):
    actor = make_actor()
    actor.client.ping()
    actor.snapshot_path.unlink()
    actor.snapshot_path.parent.rmdir()
    assert len(join_all(actor.client, together, world)) == 2


def test_unreadable_snapshot_starts_empty(make_actor, together, world):
    actor = make_actor()
    join_all(actor.client, together, world)
    actor.snapshot_path.write_text("{")
    actor.kill()
    with pytest.raises(NotJoinedError):
        actor.client.report(world, 1, 0, "running")


def test_join_of_a_failed_world_is_told_the_first_cause(client, together, world):
    client.declare_world(world, 2, generation=1)
    client.died(world, 1, 0, "exit code 7", 7)
    with pytest.raises(WorldFailedError, match=r"process 0 .* ended before it joined: exit code 7"):
        client.join(request(world, 1, generation=1), timeout_s=LONG_S)


@pytest.mark.parametrize("purpose", ["run", "up"])
def test_await_nodes_returns_with_the_last_one_and_names_those_that_do_not_come(make_actor, together, purpose):
    client = make_actor({"purpose": purpose, "nodes": ["node00", "node01", "node02"]}).client
    client.add_node(Node(node_rank=0, name="node00"))
    said = []
    with pytest.raises(NodesMissingError, match=r"node01, node02 \(of 3 nodes\) did not bring Ray up within 0.3 s"):
        client.await_nodes(timeout_s=SOON_S, show=said.append)
    assert said[0] == ("nodes start Ray", 1, 3, ["node01", "node02"])
    (waiting,) = together(lambda: client.await_nodes(timeout_s=LONG_S))
    client.add_node(Node(node_rank=2, name="node02"))
    client.lose_node(2, "no power")
    assert not waiting.done()
    client.add_node(Node(node_rank=1, name="node01"))
    assert waiting.result(LONG_S) is None, "a node that was there is not awaited again"
    client.await_nodes(timeout_s=0.0)


@pytest.mark.parametrize(
    "job", [{"purpose": "tasks", "nodes": ["n0", "n1"]}, {"id": "42"}], ids=["tasks", "another's Ray"]
)
def test_await_nodes_waits_for_nobody_who_may_never_come(make_actor, job):
    make_actor(job).client.await_nodes(timeout_s=0.0)
