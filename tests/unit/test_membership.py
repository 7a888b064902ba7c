"""The facts of a connection: each is read from its membership, and nobody sets it."""

import inspect

import pytest

from eray._connection import Connection
from eray._core.membership import Fact, Membership
from eray._preemption import Preemption

ABOUT = Membership(
    world="w",
    generation=2,
    process_index=1,
    process_count=4,
    local_device_ids=(0, 1),
    device_rule="split",
    coordinator_address="10.0.0.1:5",
    node={"name": "n1"},
    stays_until_all_left=False,
    drain_timeout_s=1.0,
    alone=False,
)
FACTS = ("world", "generation", "process_index", "process_count", "local_device_ids", "device_rule")


def member() -> Connection:
    """A connection that nobody asks anything but its facts."""
    silent = {"shutdown_jax": lambda: None, "detach_ray": lambda: None, "preemption": Preemption()}
    return Connection(ABOUT, None, None, **silent)


def test_facts_of_a_connection_are_those_of_its_membership():
    found = {name: getattr(member(), name) for name in (*FACTS, "coordinator_address")}
    assert found == {name: getattr(ABOUT, name) for name in found}


def test_fact_cannot_be_set():
    with pytest.raises(AttributeError, match="cannot be set"):
        member().process_index = 3


def test_class_can_be_inspected_without_a_member():
    assert {name for name, value in inspect.getmembers(Connection) if isinstance(value, Fact)} >= set(FACTS)


def test_ids_are_what_lines_of_the_log_have():
    assert ABOUT.ids == {"world": "w", "generation": 2, "process_index": 1, "node": "n1"}
