"""Count the accelerators that this process may open, without starting a driver: a few milliseconds, with or without.

Slurm with ``ConstrainDevices`` hides other jobs' GPUs by a device cgroup. The kernel's ``access(2)`` asks it too
(devcgroup_inode_permission), so a card counts when its device file is accessible; nothing is opened.
"""

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module

from eray._io.reading import names_in, text_of

_SHORT_OF_UUID = re.compile(r"\?")  # the driver shows GPU-????… until it has started the card


@dataclass(frozen=True)
class Hardware:
    """The cards that this process may open: how many (None: cannot be told), and their UUIDs where all are known.

    ``uuids`` are in PCI order, not in the order of any visible list: as a set they tell whether two processes share.
    """

    kind: str | None
    count: int | None
    uuids: tuple[str, ...] | None


NO_HARDWARE = Hardware(None, 0, ())


def read_hardware(
    root: str = "/",
    *,
    may_open: Callable[[str], bool] | None = None,
    nvml_uuids: Callable[[], Sequence[str] | None] | None = None,
) -> Hardware:
    """Return the accelerators of this node that this process may open: NVIDIA's first, then AMD's.

    ``root`` stands for ``/`` (a test gives a directory), ``may_open`` tells whether a device file is accessible,
    ``nvml_uuids`` asks NVML where the files do not tell the UUIDs.
    """
    may_open = may_open or _accessible
    return _nvidia(root, may_open, nvml_uuids or _nvml_uuids) or _amd(root, may_open) or NO_HARDWARE


def _nvidia(root: str, may_open: Callable[[str], bool], nvml: Callable[[], Sequence[str] | None]) -> Hardware | None:
    listing = os.path.join(root, "proc/driver/nvidia/gpus")
    cards = [_information(os.path.join(listing, name, "information")) for name in sorted(names_in(listing))]
    if not cards:
        count = sum(
            may_open(os.path.join(root, "dev", name))
            for name in names_in(os.path.join(root, "dev"))
            if re.fullmatch(r"nvidia\d+", name)
        )
        return Hardware("cuda", count, None) if count else None
    if _has_mig(root):
        return Hardware("cuda", None, None)  # instances count then, and only a visible list says which are ours
    if any("Device Minor" not in card for card in cards):
        return Hardware("cuda", None, None)
    ours = [card for card in cards if may_open(os.path.join(root, "dev", f"nvidia{card['Device Minor']}"))]
    uuids: Sequence[str] | None = [card.get("GPU UUID", "?") for card in ours]
    if any(_SHORT_OF_UUID.search(uuid) for uuid in uuids or ()):
        uuids = nvml()
        uuids = uuids if uuids is not None and len(uuids) == len(ours) else None
    return Hardware("cuda", len(ours), None if uuids is None else tuple(uuids))


def _information(path: str) -> dict[str, str]:
    # Lines such as "GPU UUID: \t GPU-6f2b…" and "Device Minor: \t 0" (NVIDIA's driver, README chapter on /proc).
    pairs = (line.partition(":") for line in text_of(path).splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


def _has_mig(root: str) -> bool:
    capabilities = os.path.join(root, "proc/driver/nvidia/capabilities")
    return any(
        instance.startswith("gi")
        for name in names_in(capabilities)
        if name.startswith("gpu")
        for instance in names_in(os.path.join(capabilities, name, "mig"))
    )


def _amd(root: str, may_open: Callable[[str], bool]) -> Hardware | None:
    nodes = os.path.join(root, "sys/class/kfd/kfd/topology/nodes")
    found = []
    for name in sorted(names_in(nodes), key=lambda name: (len(name), name)):
        # Lines such as "simd_count 304"; the kernel refuses to show a card that the device cgroup hides.
        pairs = (line.split() for line in text_of(os.path.join(nodes, name, "properties")).splitlines())
        facts = {pair[0]: pair[1] for pair in pairs if len(pair) == 2}
        minor = facts.get("drm_render_minor", "0")
        if facts.get("simd_count", "0") == "0":
            continue  # a CPU
        if may_open(os.path.join(root, "dev/dri", f"renderD{minor}")):
            found.append(facts.get("unique_id", "0"))
    if not found:
        return None
    uuids = tuple(f"GPU-{int(number):016x}" for number in found) if all(map(_is_number, found)) else None
    return Hardware("rocm", len(found), uuids)


def _is_number(text: str) -> bool:
    return text.isdigit() and text != "0"


def _nvml_uuids() -> tuple[str, ...] | None:
    try:
        nvml = import_module("pynvml")
    except ImportError:
        return None
    try:
        nvml.nvmlInit()
    except nvml.NVMLError:
        return None
    try:
        handles = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())]
        texts = [nvml.nvmlDeviceGetUUID(handle) for handle in handles]
        return tuple(text if isinstance(text, str) else text.decode() for text in texts)
    except nvml.NVMLError:
        return None
    finally:
        nvml.nvmlShutdown()


def _accessible(path: str) -> bool:
    return os.access(path, os.R_OK | os.W_OK)
