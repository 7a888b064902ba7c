import pytest

from eray._core.devices import NodeView, ProcessView, device_count, plan_node
from eray._core.division import check_division
from eray.errors import DevicePlanError, SettingError


def node(*visible, count=None, gpus=None, hardware=None, override=None, in_step=True, uuids=None, assigned=None):
    """A node whose processes see these comma lists, None where the list is unset."""
    views = tuple(
        ProcessView(
            index,
            None if text is None else tuple(text.split(",")) if text else (),
            uuids=uuids and uuids[index],
            assigned=assigned and assigned[index],
        )
        for index, text in enumerate(visible)
    )
    return NodeView("n1", count or len(views), in_step, gpus, hardware, override, views)


MIG = "MIG-a,MIG-b"


@pytest.mark.parametrize(
    ("view", "rule", "ids"),
    [
        (node(None, None), "none", [None, None]),
        (node("", ""), "none", [None, None]),
        (node(None, gpus=0), "none", [None]),
        (node(None, hardware=8), "none", [None]),
        (node(None, in_step=False), "none", [None]),
        (node(None, in_step=False, hardware=0), "none", [None]),
        (node(None, in_step=False, hardware=2), "all", [(0, 1)]),
        (node(None, None, in_step=False, hardware=4), "split", [(0, 1), (2, 3)]),
        (node("4,5,6,7", gpus=4), "all", [(0, 1, 2, 3)]),
        (node("7,6"), "all", [(0, 1)]),
        (node(None, gpus=4, hardware=4), "all", [(0, 1, 2, 3)]),
        (node(None, None, gpus=4, hardware=4), "split", [(0, 1), (2, 3)]),
        (node("MIG-a"), "all", [(0,)]),
        (node(MIG), "all", [(0,)]),
        (node("0", "1", "2"), "own", [(0,), (0,), (0,)]),
        (node("0,1", "2", gpus=3), "own", [(0, 1), (0,)]),
        (node("0", "1", count=4, gpus=4), "own", [(0,), (0,)]),
        (node("0", "0", uuids=[("GPU-a",), ("GPU-b",)]), "own", [(0,), (0,)]),
        (node("MIG-a", "MIG-b", gpus=2), "own", [(0,), (0,)]),
        (node("0", "0", "0", gpus=3), "own-bound", [(0,), (0,), (0,)]),
        (node("0,1", "0,1", gpus=4), "own-bound", [(0, 1), (0, 1)]),
        (node("0", count=3, gpus=3), "own-bound", [(0,)]),
        (node("0,1,2,3", "0,1,2,3", gpus=4), "split", [(0, 1), (2, 3)]),
        (node("0,1", "0,1"), "split", [(0,), (1,)]),
        (node("0,1", "0,1", gpus=4, uuids=[("GPU-a", "GPU-b")] * 2), "split", [(0,), (1,)]),
        (node("GPU-a,GPU-b", "GPU-a,GPU-b", gpus=2), "split", [(0,), (1,)]),
        (node("0,1", count=2, gpus=2), "split", [(0,)]),
        (node(*["0,1,2,3"] * 2, in_step=False, assigned=[("3",), ("1",)]), "own", [(3,), (1,)]),
        (node("3", "1", in_step=False, assigned=[("3",), ("1",)]), "own", [(0,), (0,)]),
        (node(None, in_step=False, assigned=[("3",)]), "all", [(3,)]),
    ],
)
def test_plan_node_rule_and_ordinals(view, rule, ids):
    shares = plan_node(view)
    assert [share.local_device_ids for share in shares] == ids
    assert {share.rule for share in shares} == {rule}
    assert [share.local_index for share in shares] == [process.local_index for process in view.processes]


@pytest.mark.parametrize(
    ("view", "code"),
    [
        (node(None, None, gpus=2), "devices-unknown"),
        (node(None, None, gpus=2, hardware=4), "devices-unknown"),
        (node(None, gpus=2, hardware=1), "devices-unknown"),
        (node("0", None, gpus=2), "devices-unknown"),
        (node("0", "GPU-a", gpus=2), "devices-unknown"),
        (node("0,1,2,3", "0,1,2,3", gpus=2), "devices-unknown"),
        (node("0,1,2", "0,1,2", gpus=3), "devices-indivisible"),
        (node(MIG, MIG, gpus=2), "devices-indivisible"),
        (node("0,1", "1,2", gpus=3), "devices-overlap"),
        (node("0,1", "1,0", gpus=2), "devices-overlap"),
        (node("0,1", "0,1", "0,1", gpus=4), "devices-overlap"),
        (node(*["0,1,2,3"] * 8, gpus=4), "too-many-processes"),
        (node("0,1,2,3", count=8, gpus=4), "too-many-processes"),
        (node("0", "1", "", gpus=2), "too-many-processes"),
        (node("0", "0", in_step=False), "too-many-processes"),
        (node(None, in_step=False, assigned=[("GPU-a",)]), "devices-unknown"),
        (node("0,1", in_step=False, assigned=[("7",)]), "devices-unknown"),
    ],
)
def test_plan_node_unsafe_division_is_an_error_with_code_and_remedy(view, code):
    with pytest.raises(DevicePlanError) as caught:
        plan_node(view)
    assert caught.value.code == code
    assert caught.value.node == "n1"
    assert any(flag in caught.value.remedy for flag in ("srun", "ERAY_DEVICES"))


@pytest.mark.parametrize(
    ("view", "rule", "ids"),
    [
        (node("0,1", "0,1", gpus=2, override="all"), "all", [(0, 1), (0, 1)]),
        (node(None, gpus=2, hardware=8, override="all"), "all", [tuple(range(8))]),
        (node(None, hardware=4, override="all"), "all", [(0, 1, 2, 3)]),
        (node(None, hardware=0, override="all"), "none", [None]),
        (node(None, None, gpus=2, hardware=4, override="split"), "split", [(0, 1), (2, 3)]),
        (node("0", "0", override="own"), "own", [(0,), (0,)]),
        (node("0,1", "0,1", override="none"), "none", [None, None]),
        (node("4,5,6", override="0,2"), "ordinals", [(0, 2)]),
        (node(None, gpus=4, override="1"), "ordinals", [(1,)]),
    ],
)
def test_plan_node_override_decides(view, rule, ids):
    shares = plan_node(view)
    assert [share.local_device_ids for share in shares] == ids
    assert {share.rule for share in shares} == {rule}


@pytest.mark.parametrize("override", ["some", "0,,1", "0,0", "-1", "٣", "2", "0;1"])
def test_plan_node_malformed_override_names_variable_and_value(override):
    with pytest.raises(SettingError) as caught:
        plan_node(node("4,5", override=override))
    assert (caught.value.variable, caught.value.value) == ("ERAY_DEVICES", override)


def test_plan_node_override_without_a_count_is_unknown():
    with pytest.raises(DevicePlanError, match="devices-unknown"):
        plan_node(node(None, gpus=4, override="all"))


def test_plan_node_override_per_process():
    both = tuple(ProcessView(index, ("0", "1"), override=str(index)) for index in range(2))
    shares = plan_node(NodeView("n1", 2, True, 2, None, None, both))
    assert [share.local_device_ids for share in shares] == [(0,), (1,)]
    one = (both[0], ProcessView(1, ("0", "1")))
    with pytest.raises(DevicePlanError, match="ERAY_DEVICES"):
        plan_node(NodeView("n1", 2, True, 2, None, None, one))


@pytest.mark.parametrize(
    ("view", "count"),
    [
        (node("5", hardware=8), 1),
        (node("", hardware=8), 0),
        (node(None, hardware=8), 0),
        (node(None, gpus=4, hardware=4), 4),
        (node(None, gpus=4, hardware=8), 0),
        (node(None, hardware=8, in_step=False), 8),
        (node(None, in_step=False), 0),
    ],
)
def test_device_count_is_ours_not_the_machines(view, count):
    assert device_count(view) == count


@pytest.mark.parametrize(
    ("there", "processes", "each", "words"),
    [
        (
            4,
            2,
            3,
            "2 processes x 3 devices = 6, the node has 4 .*; give --devices-per-process 2, or at most 1 process",
        ),
        (4, 1, 5, "1 process x 5 devices = 5, the node has 4 .*; give --devices-per-process 4$"),
        (
            4,
            8,
            1,
            "8 processes x 1 device = 8, the node has 4 .*; give at most 4 processes a node .*--processes-per",
        ),
        (4, 8, 5, "8 processes x 5 devices = 40, .*; give --devices-per-process 1, and at most 4 processes"),
        (4, 8, None, "8 processes, the node has 4 devices .*; give at most 4 processes a node .*ERAY_DEVICES=none"),
        (
            4,
            3,
            None,
            "3 processes and 4 devices, .*; give --devices-per-process 1 .*ERAY_DEVICES_PER_PROCESS.*a num",
        ),
    ],
)
def test_division_that_a_node_cannot_give_is_told_with_numbers_that_it_can(there, processes, each, words):
    with pytest.raises(DevicePlanError, match=words):
        check_division("n1", there, processes, each)


@pytest.mark.parametrize(
    ("there", "processes", "each"), [(4, 2, 2), (4, 3, 1), (4, 4, None), (4, 0, 9), (0, 2, 3), (None, 2, 3)]
)
def test_division_that_a_node_can_give(there, processes, each):
    check_division("n1", there, processes, each)
