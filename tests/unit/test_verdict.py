import pytest

from eray._core.verdict import Expected, Seen, first_difference

GPU = {"process_count": 4, "process_index": 1, "local_device_ids": (2, 3), "device_count": None, "platforms": ""}
CPU = GPU | {"local_device_ids": None}
ON_GPU = {"process_count": 4, "process_index": 1, "device_count": 2, "platform": "cuda"}
ON_CPU = ON_GPU | {"platform": "cpu", "device_count": 1}

CASES = {
    "as_planned_on_gpu": (GPU, ON_GPU, None),
    "as_planned_on_cpu": (CPU, ON_CPU, None),
    "any_number_of_cpu_devices_where_none_was_asked": (CPU, ON_CPU | {"device_count": 8}, None),
    "asked_cpu_devices": (CPU | {"device_count": 2}, ON_CPU | {"device_count": 3}, ("2", "3")),
    "silent_fall_to_cpu": (GPU, ON_CPU, ("an accelerator (ordinals 2, 3)", "cpu")),
    "fall_to_cpu_although_cuda_is_listed": (
        GPU | {"platforms": "cuda,cpu"},
        ON_CPU,
        ("an accelerator (ordinals 2, 3)", "cpu"),
    ),
    "cpu_by_wish": (GPU | {"platforms": "cpu"}, ON_CPU, None),
    "wrong_number_of_gpus": (GPU, ON_GPU | {"device_count": 4}, ("2", "4")),
    "wrong_index": (CPU, ON_CPU | {"process_index": 0}, ("1", "0")),
    "wrong_count": (CPU, ON_CPU | {"process_count": 1}, ("4", "1")),
}


@pytest.mark.parametrize(("planned", "found", "expected"), CASES.values(), ids=CASES)
def test_first_difference(planned, found, expected):
    difference = first_difference(Expected(**planned), Seen(**found))
    assert (difference and (difference.planned, difference.found)) == expected
