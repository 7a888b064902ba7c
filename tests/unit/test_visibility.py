import pytest

from eray._slurm.visibility import ray_visibility, visible_tokens
from eray.errors import SlurmContradictionError, SlurmFormatError


@pytest.mark.parametrize(
    ("environ", "tokens"),
    [
        ({}, None),
        ({"CUDA_VISIBLE_DEVICES": ""}, ()),
        ({"CUDA_VISIBLE_DEVICES": "-1"}, ()),
        ({"CUDA_VISIBLE_DEVICES": "NoDevFiles"}, ()),
        ({"CUDA_VISIBLE_DEVICES": "7,6"}, ("7", "6")),
        ({"CUDA_VISIBLE_DEVICES": " 0, 1 ,"}, ("0", "1")),
        ({"CUDA_VISIBLE_DEVICES": "0,2,-1,1"}, ("0", "2")),
        ({"CUDA_VISIBLE_DEVICES": "GPU-8932f937-d72c", "ZE_AFFINITY_MASK": "3"}, ("GPU-8932f937-d72c",)),
        ({"CUDA_VISIBLE_DEVICES": "MIG-GPU-5c89/3/0"}, ("MIG-GPU-5c89/3/0",)),
        ({"HIP_VISIBLE_DEVICES": "1", "ROCR_VISIBLE_DEVICES": "4,5"}, ("1",)),
        ({"ROCR_VISIBLE_DEVICES": "4,5", "ZE_AFFINITY_MASK": "0"}, ("4", "5")),
        ({"ZE_AFFINITY_MASK": "0.0,0.1"}, ("0.0", "0.1")),
        ({"CUDA_VISIBLE_DEVICES": "2", "ROCR_VISIBLE_DEVICES": "0,1,2,3"}, ("2",)),
        ({"CUDA_VISIBLE_DEVICES": "", "ROCR_VISIBLE_DEVICES": "0,1"}, ()),
    ],
)
def test_visible_tokens_by_vendor_and_form(environ, tokens):
    assert visible_tokens(environ) == tokens


@pytest.mark.parametrize("text", ["all", "0,1x", "0,0", "0-3", "٣", "GPU-", "1" * 5000])
def test_visible_tokens_malformed_list_names_variable_and_value(text):
    with pytest.raises(SlurmFormatError) as caught:
        visible_tokens({"CUDA_VISIBLE_DEVICES": text})
    assert (caught.value.variable, caught.value.value) == ("CUDA_VISIBLE_DEVICES", text)


def test_visible_tokens_beyond_rocr_names_both_variables():
    with pytest.raises(SlurmContradictionError, match=r"CUDA_VISIBLE_DEVICES='0,1', ROCR_VISIBLE_DEVICES='1'"):
        visible_tokens({"CUDA_VISIBLE_DEVICES": "0,1", "ROCR_VISIBLE_DEVICES": "1"})


@pytest.mark.parametrize(
    ("environ", "changes"),
    [
        ({}, {}),
        ({"HIP_VISIBLE_DEVICES": "2"}, {}),
        ({"ROCR_VISIBLE_DEVICES": "0,1"}, {"HIP_VISIBLE_DEVICES": "0,1", "ROCR_VISIBLE_DEVICES": None}),
        ({"ROCR_VISIBLE_DEVICES": ""}, {"HIP_VISIBLE_DEVICES": "", "ROCR_VISIBLE_DEVICES": None}),
        (
            {"ROCR_VISIBLE_DEVICES": "4,6", "HIP_VISIBLE_DEVICES": "1"},
            {"HIP_VISIBLE_DEVICES": "6", "ROCR_VISIBLE_DEVICES": None},
        ),
    ],
)
def test_ray_visibility_replaces_rocr_by_hip(environ, changes):
    assert ray_visibility(environ) == changes


def test_ray_visibility_hip_beyond_rocr_is_a_contradiction():
    with pytest.raises(SlurmContradictionError, match="HIP_VISIBLE_DEVICES"):
        ray_visibility({"ROCR_VISIBLE_DEVICES": "4", "HIP_VISIBLE_DEVICES": "1"})
