"""A driver that launches worlds. The scenario's name is its argument; what came of it is printed after ``result:``.

Ray pickles what stands here by value, since it is the main program.
"""

import json
import os
import pathlib
import signal
import sys
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor

import eray
from eray._io import process
from eray.errors import UsageError

PAIR = {"processes": 2, "cpus_per_process": 0.25}
ONE = {"processes": 1, "cpus_per_process": 0.25}
SAID_AFTER_S = 11.0
"""A wait that is long enough to be told of."""
LARGE = 4_000_000
"""Bytes that Ray keeps in its object store."""


def describe(first, *, second):
    conn = eray.connect()
    import jax
    from jax.experimental import multihost_utils

    gathered = multihost_utils.process_allgather(jax.numpy.array([conn.process_index]))
    return {
        "arguments": [first, second],
        "same": conn is eray.connect(),
        "index": [conn.process_index, jax.process_index()],
        "gathered": gathered.ravel().tolist(),
        "devices": [jax.local_device_count(), jax.device_count()],
        "generation": conn.generation,
        "pid": os.getpid(),
        "node": conn.node.name,
    }


def large():
    import numpy as np

    return np.arange(1_000_000)


def sends_back(argument):
    return os.getpid(), argument


def raises(culprit):
    conn = eray.connect()
    print(f"the last words of {conn.process_index}", file=sys.stderr, flush=True)
    if culprit in (conn.process_index, "all"):
        raise KeyError("no such layer")
    time.sleep(60)


def exits(code):
    sys.exit(code)


def returns_a_lock():
    return threading.Lock()


class Odd(Exception):
    def __init__(self):
        super().__init__("odd")
        self.lock = threading.Lock()


def raises_odd():
    raise Odd


def waits_to_be_killed(path):
    conn = eray.connect()
    with open(f"{path}.{conn.process_index}.part", "w") as file:
        file.write(str(os.getpid()))
    os.rename(f"{path}.{conn.process_index}.part", f"{path}.{conn.process_index}")
    time.sleep(60)


def second_life(kind):
    conn = eray.connect()
    if conn.generation == 1 and conn.process_index == 1:
        if kind == "usage":
            raise UsageError("again")
        os.kill(os.getpid(), signal.SIGKILL)
    if conn.generation == 1:
        time.sleep(60)
    return conn.generation, conn.process_index, os.environ["ERAY_GENERATION"]


def shows_devices():
    conn = eray.connect()
    visible = os.environ["CUDA_VISIBLE_DEVICES"]
    about = {"index": conn.process_index, "node_rank": conn.node.node_rank, "visible": visible}
    return about | {"ids": conn.local_device_ids, "rule": conn.device_rule}


def on_what_is_left(path):
    conn = eray.connect()
    if conn.generation == 1:
        waits_to_be_killed(path)
    return conn.generation, conn.process_index, conn.process_count, conn.node.node_rank


def launches_itself():
    try:
        eray.launch(large)
    except eray.ErayError as exc:
        return type(exc).__name__, str(exc)


def meets(mine, others):
    """Return when both worlds run: neither waits for the other's end."""
    conn = eray.connect()
    open(mine, "w").close()
    deadline = time.monotonic() + 40
    while not os.path.exists(others):
        assert time.monotonic() < deadline, f"{others} is missing"
        time.sleep(0.05)
    return conn.world


def failure(call, *args, **kwargs):
    """Return what a launch raised, and how long it took."""
    started = time.monotonic()
    try:
        call(*args, **kwargs)
    except Exception as exc:
        return {
            "types": [kind.__name__ for kind in type(exc).__mro__],
            "text": str(exc),
            "notes": "\n".join(getattr(exc, "__notes__", ())),
            "trace": "".join(traceback.format_exception(exc)),
            "took_s": time.monotonic() - started,
        }
    raise AssertionError(f"{call} {args} {kwargs} did not raise")


def gone(pid):
    return not process.is_alive(pid)  # Ray may not have reaped it yet


def groups():
    import ray

    return [row["state"] for row in ray.util.placement_group_table().values() if row["state"] != "REMOVED"]


def results():
    import ray

    eray.attach()
    reference = ray.put("second")
    said = eray.launch(describe, ("first",), {"second": reference}, devices_per_process=2, **PAIR)
    return {"said": said, "sum": int(eray.launch(large, **ONE)[0].sum()), "gone": [gone(each["pid"]) for each in said]}


def at_once(**calls):
    """Return what the calls return, made in threads of their own."""
    with ThreadPoolExecutor(len(calls)) as pool:
        futures = {name: pool.submit(*call) for name, call in calls.items()}
        return {name: future.result() for name, future in futures.items()}


def failures():
    def failing(fn, *args, **options):
        return failure(eray.launch, fn, args, **options)

    return at_once(
        raised=(lambda: failing(raises, 1, **PAIR),),
        all=(lambda: failing(raises, "all", **PAIR),),
        exit=(lambda: failing(exits, 3, **ONE),),
        exit_0=(lambda: eray.launch(exits, (0,), **ONE),),
        result=(lambda: failing(returns_a_lock, **ONE),),
        odd=(lambda: failing(raises_odd, **ONE),),
    )


def killed():
    path, pids, killed_at = f"{os.getcwd()}/pid", {}, []

    def kill():
        while len(pids) < 2:
            for index in range(2):
                if os.path.exists(f"{path}.{index}"):
                    pids[index] = int(pathlib.Path(f"{path}.{index}").read_text())
            time.sleep(0.02)
        killed_at.append(time.monotonic())
        os.kill(pids[1], signal.SIGKILL)

    threading.Thread(target=kill).start()
    found = failure(eray.launch, waits_to_be_killed, (path,), **PAIR)
    after_s = time.monotonic() - killed_at[0]
    world = eray.attach().topology().worlds[-1]
    states = [each.state for each in world.processes]
    left = {"gone": [gone(pid) for pid in pids.values()], "groups": groups(), "states": states}
    return {"error": found, "pid": pids[1], "after_s": after_s, "cause": world.failure} | left


def restarts():
    eray.attach()
    found = at_once(
        said=(lambda: eray.launch(second_life, ("killed",), max_restarts=1, world="train", **PAIR),),
        usage=(lambda: failure(eray.launch, second_life, ("usage",), max_restarts=1, **PAIR),),
    )
    world = eray.attach().topology().world("train")
    return found | {"restarts": [each.model_dump() for each in world.restarts]}


def placement():
    import ray

    eray.attach()
    too_much = failure(eray.launch, large, cpus_per_process=1000)
    too_few_nodes = failure(eray.launch, large, max_restarts=1, min_nodes=2, **ONE)
    held = ray.util.placement_group([{"CPU": ray.cluster_resources()["CPU"]}])
    assert held.wait(10)
    waited = failure(eray.launch, large, timeout_s=1.5, **ONE)
    ray.util.remove_placement_group(held)
    lock = threading.Lock()
    return {
        "too much": too_much,
        "too few nodes": too_few_nodes,
        "held": waited,
        "pickle": failure(eray.launch, lambda: lock, **ONE),
        "argument": failure(eray.launch, large, (lock,), **ONE),
        "environment": failure(eray.launch, large, runtime_env={"working_dir": "/no/such/place"}, **ONE),
        "inside": eray.launch(launches_itself, **ONE),
        "groups": groups(),
    }


def side_by_side():
    here = os.getcwd()

    def one(name, other):
        return eray.launch(meets, (f"{here}/{name}", f"{here}/{other}"), world=name, **ONE)

    return at_once(a=(one, "a", "b"), b=(one, "b", "a"))


class ComesLate:
    """An argument that arrives in one process at once, and in the others after ``late_s`` seconds."""

    def __init__(self, path, late_s):
        self.path, self.late_s = path, late_s

    def __setstate__(self, state):
        self.__dict__ |= state
        try:
            os.mkdir(self.path)
        except FileExistsError:
            time.sleep(self.late_s)


def waits():
    """Wait for room, and then for a process to join."""
    import ray

    eray.attach()
    held = ray.util.placement_group([{"CPU": ray.cluster_resources()["CPU"]}])
    assert held.wait(10)
    threading.Timer(SAID_AFTER_S, ray.util.remove_placement_group, [held]).start()
    late = ComesLate(f"{os.getcwd()}/first", SAID_AFTER_S)
    eray.launch(type, (late,), world="slow", **PAIR)
    os.rmdir(late.path)


def one_after_another(count):
    import ray

    eray.attach()
    pids = [eray.launch(sends_back, (bytes(LARGE),), **ONE)[0][0] for _ in range(int(count))]
    deadline = time.monotonic() + 5
    while (free := ray.available_resources()) != ray.cluster_resources():
        assert time.monotonic() < deadline, (free, ray.cluster_resources())
        time.sleep(0.05)
    worlds = eray.attach().topology().worlds
    return {
        "pids": len(set(pids)),
        "left": [pid for pid in pids if not gone(pid)],
        "groups": groups(),
        "worlds": [str(world.phase) for world in worlds],
    }


def gpus():
    own = {"env_vars": {"JAX_PLATFORMS": "cpu"}}
    return eray.launch(shows_devices, processes_per_node=2, runtime_env=own, timeout_s=60)


def loses_a_node():
    share = {"cpus_per_process": 1, "devices_per_process": 0}
    return eray.launch(on_what_is_left, (f"{os.getcwd()}/pid",), processes=2, max_restarts=1, timeout_s=60, **share)


def last_world():
    """Wait until the coordinator has given up the world of a driver that is gone."""
    deadline = time.monotonic() + 30
    while True:
        world = eray.attach().topology().worlds[-1]
        if {each.state for each in world.processes} == {"dead"} or time.monotonic() > deadline:
            return [str(world.phase), *(each.state for each in world.processes)]
        time.sleep(0.2)


def hog(culprit):
    conn = eray.connect()
    held = []
    while conn.process_index == culprit:
        held.append(b"x" * 2**26)
    time.sleep(60)


def out_of_memory():
    return failure(eray.launch, hog, (1,), **PAIR)


def interrupted():
    try:
        eray.launch(waits_to_be_killed, (f"{os.getcwd()}/pid",), **PAIR)
    except KeyboardInterrupt:
        return {"groups": groups()}


if __name__ == "__main__":
    scenario, *words = sys.argv[1:]
    print("result:", json.dumps(globals()[scenario](*words)), flush=True)
