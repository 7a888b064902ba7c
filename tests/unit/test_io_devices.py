"""The accelerators of a node, from made-up driver files."""

import time

import pytest

from eray._io.devices import NO_HARDWARE, Hardware, read_hardware

UUIDS = [f"GPU-{index:08d}-1111-2222-3333-444444444444" for index in range(4)]


def nvidia(root, uuids, minors=None):
    for index, uuid in enumerate(uuids):
        card = root / f"proc/driver/nvidia/gpus/0000:{index + 1:02x}:00.0"
        card.mkdir(parents=True)
        minor = index if minors is None else minors[index]
        (card / "information").write_text(
            f"Model: \t\t NVIDIA H200\nIRQ:   \t\t 120\nGPU UUID: \t {uuid}\nBus Location: \t 0000:01:00.0\n"
            f"Device Minor: \t {minor}\nGPU Excluded:\t No\n"
        )
        (root / "dev").mkdir(exist_ok=True)
        (root / f"dev/nvidia{minor}").write_text("")


def read(root, hidden=(), nvml=lambda: None) -> Hardware:
    hidden_paths = {str(root / name) for name in hidden}
    return read_hardware(str(root), may_open=lambda path: path not in hidden_paths, nvml_uuids=nvml)


def test_hardware_without_accelerator_is_none_and_quick(tmp_path):
    started = time.monotonic()
    assert read_hardware(str(tmp_path)) == NO_HARDWARE
    assert time.monotonic() - started < 0.05


def test_hardware_nvidia_counts_and_names_cards(tmp_path):
    nvidia(tmp_path, UUIDS)
    assert read(tmp_path) == Hardware("cuda", 4, tuple(UUIDS))
    assert read_hardware(str(tmp_path)) == Hardware("cuda", 4, tuple(UUIDS))


def test_hardware_nvidia_cards_hidden_by_a_cgroup_do_not_count(tmp_path):
    nvidia(tmp_path, UUIDS, minors=[3, 2, 1, 0])
    assert read(tmp_path, hidden=("dev/nvidia3", "dev/nvidia0")) == Hardware("cuda", 2, tuple(UUIDS[1:3]))
    assert read(tmp_path, hidden=[f"dev/nvidia{minor}" for minor in range(4)]) == Hardware("cuda", 0, ())


@pytest.mark.parametrize(
    ("nvml", "uuids"),
    [(None, None), (UUIDS[:2], tuple(UUIDS[:2])), (UUIDS, None)],
    ids=["absent", "fits", "other count"],
)
def test_hardware_nvidia_uuid_unknown_to_the_driver_is_asked_of_nvml(tmp_path, nvml, uuids):
    nvidia(tmp_path, ["GPU-????????-????-????-????-????????????"] * 2)
    assert read(tmp_path, nvml=lambda: nvml) == Hardware("cuda", 2, uuids)


def test_hardware_nvidia_with_mig_instances_cannot_be_counted(tmp_path):
    nvidia(tmp_path, UUIDS[:1])
    (tmp_path / "proc/driver/nvidia/capabilities/gpu0/mig/gi1").mkdir(parents=True)
    assert read(tmp_path) == Hardware("cuda", None, None)


def test_hardware_nvidia_without_driver_listing_counts_device_files(tmp_path):
    (tmp_path / "dev").mkdir()
    for name in ("nvidia0", "nvidia1", "nvidia12", "nvidiactl", "nvidia-uvm", "null"):
        (tmp_path / "dev" / name).write_text("")
    assert read(tmp_path, hidden=("dev/nvidia1",)) == Hardware("cuda", 2, None)


def amd(root, cards):
    for index, text in enumerate(cards):
        node = root / f"sys/class/kfd/kfd/topology/nodes/{index}"
        node.mkdir(parents=True)
        (node / "properties").write_text(text)


CPU = "cpu_cores_count 64\nsimd_count 0\n"


def card(minor: int, unique: int) -> str:
    return f"cpu_cores_count 0\nsimd_count 304\ndrm_render_minor {minor}\nunique_id {unique}\n"


def test_hardware_amd_counts_cards_not_cpus(tmp_path):
    amd(tmp_path, [CPU, card(128, 0xABC), card(136, 0xDEF)])
    assert read(tmp_path) == Hardware("rocm", 2, ("GPU-0000000000000abc", "GPU-0000000000000def"))
    assert read(tmp_path, hidden=("dev/dri/renderD128",)) == Hardware("rocm", 1, ("GPU-0000000000000def",))


def test_hardware_amd_without_unique_ids_or_cards(tmp_path):
    amd(tmp_path, [CPU, card(128, 0), ""])
    assert read(tmp_path) == Hardware("rocm", 1, None)
    amd(tmp_path / "cpu", [CPU])
    assert read(tmp_path / "cpu") == NO_HARDWARE
