"""One of two processes that tries all that a member of a world may do; says at the end that all was as it must be."""

import multiprocessing
import os
import sys

if os.environ["ERAY_PROCESS_INDEX"] == "1":
    pass  # before connect(), as many programs do

import eray
from eray.errors import ConnectionStateError


def refusal(call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except ConnectionStateError as exc:
        return str(exc)
    raise SystemExit(f"{call} was not refused")


def no_member(conn):
    assert "fork" in refusal(conn.barrier, "in a fork"), refusal(conn.barrier, "in a fork")
    assert "fork" in refusal(conn.topology)
    conn.close()


def forked(conn, leave):
    child = os.fork()
    if child == 0:
        no_member(conn)
        leave(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def forks(conn):
    assert forked(conn, os._exit) == 0
    assert forked(conn, sys.exit) == 1  # and says why
    child = multiprocessing.get_context("fork").Process(target=no_member, args=(conn,))
    child.start()
    child.join()
    assert child.exitcode == 0


def barriers(conn):
    for _ in range(3):
        conn.barrier("again")
    if conn.process_index == 0:
        try:
            conn.barrier("late", timeout_s=0.5)
        except TimeoutError as exc:
            print("late:", exc, flush=True)
        conn.barrier("other")
        conn.barrier("late")
    else:
        conn.barrier("other")
        conn.barrier("late")
    conn.barrier("again")


def main():
    conn = eray.connect()
    assert eray.connect() is conn
    assert eray.connect(jax=True) is conn
    assert "world=None, now 'other'" in refusal(eray.connect, world="other")
    assert "jax=True, now False" in refusal(eray.connect, jax=False)
    forks(conn)
    barriers(conn)
    cluster = eray.attach()
    for topology in (cluster.topology(), conn.topology()):
        world = topology.world("main")
        assert [process.state for process in world.processes] == ["running"] * 2
        assert world.coordinator_address == conn.coordinator_address
        assert topology.node(0) == conn.node
    import jax
    import ray

    own, told = (each.rpartition(":")[2] for each in (ray.get_runtime_context().gcs_address, cluster.address))
    assert own == told  # the port: one machine has several addresses
    assert ray.get(eray.coordinator().topology.remote(), timeout=30)["head"] == conn.node.name
    assert ray.get_actor("eray-coordinator") == cluster.coordinator  # the namespace is eray's
    assert jax.process_index() == conn.process_index
    conn.barrier("end")
    conn.close()
    conn.close()
    assert "closed" in refusal(conn.barrier, "after the end")
    assert "has left" in refusal(eray.connect)
    print("all is well", flush=True)


main()
