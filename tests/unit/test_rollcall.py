"""The roll-call of nodes: who is there, who is missing, and what makes a cluster impossible."""

import json
from dataclasses import replace

import pytest

from eray._core.rollcall import NodeReport, RollCall
from eray.errors import AddressError, BeaconError, VersionMismatchError

NAMES = ("n1", "n2", "n3")


def report(rank: int, **changes) -> NodeReport:
    name = NAMES[rank] if rank < len(NAMES) else f"n{rank + 1}"
    whole = NodeReport(
        node_rank=rank,
        name=name,
        hostname=f"{name}.cluster",
        address=f"10.0.0.{rank + 1}",
        pid=100 + rank,
        python="3.11.2",
        ray="2.60.0",
        eray="0.1.0",
        cpus=8,
        memory_bytes=1 << 30,
        devices=("0", "GPU-1"),
        hardware_count=2,
    )
    return replace(whole, **changes)


def call(*reports: NodeReport, roll: RollCall | None = None) -> RollCall:
    roll = roll or RollCall(NAMES)
    for each in reports:
        roll = roll.register(each, now=1.0)
    return roll


def test_rollcall_all_report_is_complete():
    roll = call(report(2), report(0))
    assert roll.missing == ("n2",)
    assert not roll.complete
    roll = call(report(1), roll=roll)
    assert roll.complete
    assert roll.missing == ()
    assert [each.name for each in roll.reports] == list(NAMES)


def test_rollcall_is_frozen_each_event_gives_the_next():
    before = RollCall(NAMES)
    after = before.register(report(0), 1.0)
    assert before.missing == NAMES
    assert after.missing == ("n2", "n3")


def test_rollcall_lost_node_is_missing_until_it_reports_again():
    roll = call(*map(report, range(3))).lost(1, 5.0)
    assert roll.missing == ("n2",)
    assert not roll.complete
    assert roll.lost(1, 6.0) is roll
    assert roll.lost(7, 6.0) is roll
    assert call(report(1, pid=999), roll=roll).complete


def test_rollcall_same_supervisor_again_changes_nothing():
    assert call(report(0), report(1), report(2), report(1, devices=None)).complete


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("python", "3.11.9", "Python 3.11.9, the head n1 has 3.11.2"),
        ("ray", "2.61.0", "Ray 2.61.0"),
        ("eray", "0.2.0", "eray 0.2.0"),
    ],
)
@pytest.mark.parametrize("head_first", [True, False])
def test_rollcall_other_version_names_node_and_both(field, value, words, head_first):
    reports = [report(0), report(1, **{field: value})]
    problem = call(*(reports if head_first else reversed(reports))).problem
    assert isinstance(problem, VersionMismatchError)
    assert problem.node == "n2"
    assert words in str(problem)
    assert "one environment" in str(problem)


def test_rollcall_versions_are_held_against_the_chosen_head():
    problem = call(report(0), report(1, ray="2.61.0"), roll=RollCall(NAMES, head_rank=1)).problem
    assert isinstance(problem, VersionMismatchError)
    assert problem.node == "n1"


def test_rollcall_second_supervisor_of_a_node_is_a_problem_naming_both():
    roll = call(report(0), report(1), report(1, pid=555))
    assert isinstance(roll.problem, BeaconError)
    assert "pid 101 on n2.cluster" in str(roll.problem)
    assert "pid 555" in str(roll.problem)
    assert roll.reports[1].pid == 101


@pytest.mark.parametrize(("rank", "name"), [(1, "n3"), (3, "n4")])
def test_rollcall_wrong_place_is_a_problem(rank, name):
    roll = call(report(rank, name=name))
    assert isinstance(roll.problem, BeaconError)
    assert roll.problem.node == name
    assert "SLURM_NODEID" in str(roll.problem)
    assert roll.missing == NAMES


@pytest.mark.parametrize("address", ["127.0.1.1", "::1"])
def test_rollcall_loopback_is_a_problem_with_more_than_one_node(address):
    problem = call(report(1, address=address)).problem
    assert isinstance(problem, AddressError)
    assert "/etc/hosts" in str(problem)
    assert "ERAY_INTERFACE" in str(problem)
    assert RollCall(("n1",)).register(report(0, address=address), 0.0).complete


def test_rollcall_one_address_twice_is_a_problem():
    problem = call(report(0), report(2, address="10.0.0.1")).problem
    assert isinstance(problem, AddressError)
    assert "node n1 too" in str(problem)


def test_rollcall_first_problem_is_kept():
    roll = call(report(0), report(1, ray="2.61.0"), report(2, address="127.0.0.1"))
    assert isinstance(roll.problem, VersionMismatchError)


def test_report_survives_the_wire():
    for each in (report(0), report(1, devices=None, hardware_count=None), report(2, devices=())):
        assert NodeReport.from_dict(json.loads(json.dumps(each.to_dict())) | {"later": 1}) == each


BAD = [
    ("node_rank", -1),
    ("node_rank", True),
    ("node_rank", "0"),
    ("name", ""),
    ("hostname", None),
    ("address", "n1"),
    ("address", "0.0.0.0"),
    ("pid", 0),
    ("python", 3.11),
    ("ray", None),
    ("eray", 1),
    ("cpus", 0),
    ("cpus", 1.5),
    ("memory_bytes", -1),
    ("devices", "0,1"),
    ("devices", [0, 1]),
    ("hardware_count", -1),
]


@pytest.mark.parametrize(("field", "value"), BAD)
def test_report_bad_field_is_named(field, value):
    with pytest.raises(BeaconError, match=f"field '{field}'"):
        NodeReport.from_dict(report(0).to_dict() | {field: value})


@pytest.mark.parametrize("field", list(report(0).to_dict()))
def test_report_missing_field_is_named(field):
    raw = report(0).to_dict()
    del raw[field]
    with pytest.raises(BeaconError, match=f"field '{field}' of its node report is missing"):
        NodeReport.from_dict(raw)


def test_rollcall_large_cluster_is_quick():
    names = tuple(f"n{rank + 1}" for rank in range(1000))
    roll = RollCall(names)
    for rank in range(1000):
        roll = roll.register(report(rank, name=names[rank], address=f"10.0.{rank // 250}.{rank % 250 + 1}"), 0.0)
    assert roll.complete
