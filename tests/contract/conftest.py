"""One coordinator, twice: in this process on an event loop, and as Ray's actor."""

import asyncio
import json
import os
import shutil
import signal
import tempfile
import threading
import time
import uuid
from concurrent.futures import CancelledError, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from pathlib import Path

import pytest
import ray

from eray._ray.asking import NoAnswer
from eray._ray.calls import ray_call
from eray._ray.client import CoordinatorClient
from eray._ray.coordinator import Coordinator
from eray._ray.creation import create_coordinator
from eray._ray.relay import AT_ONCE, WAITING, NodeRelay, answers_to, without_answer
from eray._ray.relayed import RelayedCall

JSON_TYPES = (dict, list, str, int, float, bool, type(None))


def require_json_types(value):
    """Fail unless ``value`` is made of JSON's own types, exactly: an enum would need eray to be read."""
    assert type(value) in JSON_TYPES, f"{value!r} is a {type(value)}"
    if isinstance(value, dict):
        assert all(type(key) is str for key in value)
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            require_json_types(item)


def checked(call):
    """Wrap a Call: what goes in and out must be JSON types, with api_version in each answer."""

    def checked_call(handle, method, args, timeout_s):
        require_json_types(list(args))
        answer = call(handle, method, args, timeout_s)
        require_json_types(answer)
        assert answer["api_version"] == 1
        return answer

    return checked_call


class FakeActor:
    """The real Coordinator on an event loop of its own, which obeys Ray's rules for an actor that is killed."""

    def __init__(self, snapshot_path, job):
        self._make = lambda: Coordinator(str(snapshot_path), job)
        self._swapping = threading.Lock()
        self._start()

    def _start(self):
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.coordinator = self._make()
        self.thread.start()

    def call(self, handle, method, args, timeout_s):
        args = json.loads(json.dumps(list(args)))
        with self._swapping:  # a call reaches one life or the next
            future = asyncio.run_coroutine_threadsafe(getattr(self.coordinator, method)(*args), self.loop)
        try:
            return future.result(timeout_s)
        except FutureTimeoutError as exc:
            raise NoAnswer(method) from exc
        except CancelledError as exc:
            raise NoAnswer("killed") from exc

    def stop(self):
        async def cancel_all():
            others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)

        asyncio.run_coroutine_threadsafe(cancel_all(), self.loop).result(10)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(10)
        self.loop.close()

    def kill(self):
        with self._swapping:
            self.stop()
            self._start()


class RelayedActor(FakeActor):
    """The same, asked as processes without Ray are served: gathered by their node's supervisor, and asked as one."""

    def __init__(self, snapshot_path, job):
        super().__init__(snapshot_path, job)
        self._supervisor = asyncio.new_event_loop()
        threading.Thread(target=self._supervisor.run_forever, daemon=True).start()
        self._node = NodeRelay(lambda message: self._heads.submit(self._ask, message), lambda: 4)
        self._heads = ThreadPoolExecutor(64)
        self._relayed = RelayedCall(self)

    def call(self, handle, method, args, timeout_s):
        if method in WAITING | AT_ONCE:
            return self._relayed(handle, method, args, timeout_s)
        return super().call(handle, method, args, timeout_s)

    def send(self, message):
        message = json.loads(json.dumps(message))
        self._supervisor.call_soon_threadsafe(self._node.take, self._relayed.take, message)

    def _ask(self, message):
        try:
            asked = (message["method"], message["calls"], message["wait_s"])
            told = answers_to(message, super().call(None, "together", asked, 60.0)["answers"])
        except NoAnswer:
            told = without_answer(message, {"no_answer": True})
        self._supervisor.call_soon_threadsafe(self._node.answered, told)

    def stop(self):
        super().stop()
        if self._swapping.acquire(blocking=False):  # it is not killed, but over
            self._supervisor.call_soon_threadsafe(self._supervisor.stop)
            self._heads.shutdown(wait=False)
            self._swapping.release()


class RealActor:
    """The actor in a Ray cluster."""

    call = staticmethod(ray_call)

    def __init__(self, snapshot_path, job):
        self.handle = create_coordinator(
            node_id=ray.get_runtime_context().get_node_id(),
            namespace="eray",
            name=f"coordinator-{uuid.uuid4().hex}",
            snapshot_path=str(snapshot_path),
            job=job,
        )

    def kill(self):
        os.kill(ray.get(self.handle.ping.remote(), timeout=30)["pid"], signal.SIGKILL)

    def stop(self):
        ray.kill(self.handle)


def processes_of(directory):
    """Return the pids of processes that name ``directory`` in their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and directory.encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


@pytest.fixture(scope="session")
def local_ray():
    """Start one Ray for all modules in a private directory, and leave nothing of it behind."""
    directory = tempfile.mkdtemp(prefix="er", dir="/tmp")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", directory)
        patch.setenv("RAY_AUTH_MODE", "disabled")
        patch.delenv("RAY_ADDRESS", raising=False)
        try:
            ray.init(num_cpus=2, include_dashboard=False, _temp_dir=f"{directory}/r", namespace="eray")
            yield
        finally:
            ray.shutdown()
            until = time.monotonic() + 15.0
            while (left := processes_of(directory)) and time.monotonic() < until:
                time.sleep(0.1)
            shutil.rmtree(directory, ignore_errors=True)
    assert not left


@pytest.fixture(scope="module", params=["fake", "relayed", pytest.param("actor", marks=pytest.mark.ray)])
def make_actor(request, tmp_path_factory):
    """Return a function that makes a coordinator; all are stopped at the end."""
    if request.param == "actor":
        request.getfixturevalue("local_ray")
    made = []

    def make(job=None):
        path = tmp_path_factory.mktemp("run") / "coordinator.json"
        kinds = {"actor": RealActor, "fake": FakeActor, "relayed": RelayedActor}
        actor = kinds[request.param](path, job or {"id": "42", "step": "0", "restart": 0})
        actor.snapshot_path = path
        actor.client = CoordinatorClient(getattr(actor, "handle", None), call=checked(actor.call))
        made.append(actor)
        return actor

    yield make
    for actor in made:
        actor.stop()


@pytest.fixture(scope="module")
def shared_actor(make_actor):
    """Return one coordinator for the tests that have a world of their own in it."""
    return make_actor()


@pytest.fixture
def client(shared_actor):
    """Return a client of the shared coordinator."""
    return shared_actor.client


@pytest.fixture
def world(request):
    """Return a name for a world that no other test has."""
    return request.node.name
