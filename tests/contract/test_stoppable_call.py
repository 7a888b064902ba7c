"""Calls that another thread can end, against Ray's actor and its errors."""

import subprocess
import sys
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor, wait

import pytest
import ray

from eray._ray.asking import NoAnswer
from eray._ray.client import CoordinatorClient
from eray._ray.creation import create_coordinator
from eray._ray.stoppable import StoppableCall
from eray.errors import ClusterLostError, ConnectionStateError, NotJoinedError, UsageError

pytestmark = pytest.mark.ray


@pytest.fixture
def handle(local_ray):
    handle = create_coordinator(
        node_id=ray.get_runtime_context().get_node_id(),
        namespace="eray",
        name=f"coordinator-{uuid.uuid4().hex}",
        snapshot_path=None,
        job={"id": "42"},
    )
    yield handle
    ray.kill(handle)


def test_call_answers_and_refuses_as_the_plain_one(handle):
    client = CoordinatorClient(handle, call=StoppableCall())
    assert client.ping() == CoordinatorClient(handle).ping()
    with pytest.raises(NotJoinedError):
        client.follow("nobody", 1, 0, warned=False)
    with pytest.raises(UsageError):
        client.warn("")


def test_stop_ends_those_who_wait_and_refuses_the_next(handle):
    calls = StoppableCall()
    client = CoordinatorClient(handle, call=calls)
    version = client.watch(0, wait_s=5.0)["version"]
    with ThreadPoolExecutor(4) as pool:
        waiting = [pool.submit(client.watch, version, wait_s=25.0) for _ in range(4)]
        wait(waiting, timeout=0.5)
        assert not any(future.done() for future in waiting)
        began = time.monotonic()
        calls.stop()
        for future in waiting:
            with pytest.raises(ConnectionStateError, match="the connection is closed"):
                future.result()
        assert time.monotonic() - began < 2.0
    with pytest.raises(ConnectionStateError):
        client.ping()
    assert CoordinatorClient(handle).ping()["version"] == version


def test_call_without_an_answer_in_time_is_lost(handle):
    calls = StoppableCall()
    version = CoordinatorClient(handle).ping()["version"]
    with pytest.raises(NoAnswer):
        calls(handle, "watch", (version, 25.0), 0.3)


def test_call_to_a_coordinator_that_is_gone_is_lost(handle):
    client = CoordinatorClient(handle, call=StoppableCall())
    client.ping()
    ray.kill(handle)
    lost = threading.Event()

    def ping_until_it_is_gone():
        while not lost.is_set():  # Ray kills it a moment later
            client.ping(timeout_s=30.0)

    timer = threading.Timer(30.0, lost.set)
    timer.start()
    with pytest.raises(ClusterLostError):
        ping_until_it_is_gone()
    timer.cancel()


LEAVES = """
import sys, threading, ray
from eray._ray.client import CoordinatorClient
from eray._ray.stoppable import StoppableCall
ray.init(sys.argv[1], namespace="eray", log_to_driver=False)
calls = StoppableCall()
client = CoordinatorClient(ray.get_actor(sys.argv[2]), call=calls)
version = client.ping()["version"]

def follow():
    try:
        while True:
            client.watch(version, wait_s=25.0)
    except BaseException as exc:
        print(type(exc).__name__, flush=True)

thread = threading.Thread(target=follow)
thread.start()
thread.join(0.5)
calls.stop()
ray.shutdown()
thread.join(5.0)
print(thread.is_alive(), ray.is_initialized(), flush=True)
"""


def test_driver_leaves_ray_with_a_call_under_way(handle):
    CoordinatorClient(handle).ping()
    address, names = ray.get_runtime_context().gcs_address, ray.util.list_named_actors()
    done = subprocess.run(
        [sys.executable, "-c", LEAVES, address, names[-1]], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.split() == ["ConnectionStateError", "False", "False"], done.stderr
