"""Compare what JAX became with what the plan said."""

from dataclasses import dataclass

ACCELERATORS = ("cuda", "gpu", "rocm", "tpu", "oneapi", "xpu")


@dataclass(frozen=True)
class Seen:
    """What one process finds in JAX after it started."""

    process_count: int
    process_index: int
    device_count: int
    platform: str


@dataclass(frozen=True)
class Expected:
    """What the plan says for one process.

    ``local_device_ids`` are accelerators, None for none; ``device_count`` is what `--devices-per-process` asked for;
    ``platforms`` is JAX's own setting, empty where JAX may choose.
    """

    process_count: int
    process_index: int
    local_device_ids: tuple[int, ...] | None
    device_count: int | None
    platforms: str


@dataclass(frozen=True)
class Difference:
    """One thing that is not as planned."""

    what: str
    planned: str
    found: str
    remedy: str = "look at XLA_FLAGS, JAX_PLATFORMS and the visible-devices variables of that process"


NO_PLUGIN = "install JAX with support for it (`pip install 'jax[cuda]'`), or set JAX_PLATFORMS=cpu to leave it alone"


def first_difference(expected: Expected, seen: Seen) -> Difference | None:
    """Return the first thing in which JAX differs from the plan, or None.

    Accelerators are checked unless JAX_PLATFORMS leaves them out: a silent fall to CPU is a difference.
    """
    rows = [
        ("process_count", expected.process_count, seen.process_count),
        ("process_index", expected.process_index, seen.process_index),
    ]
    wants_accelerator = expected.local_device_ids is not None and _allows_accelerator(expected.platforms)
    if wants_accelerator and seen.platform == "cpu":
        ids = ", ".join(map(str, expected.local_device_ids or ()))
        return Difference("the platform of its devices", f"an accelerator (ordinals {ids})", "cpu", NO_PLUGIN)
    if wants_accelerator:
        assert expected.local_device_ids is not None
        rows.append(("the number of local devices", len(expected.local_device_ids), seen.device_count))
    elif expected.device_count is not None:
        rows.append(("the number of local devices", expected.device_count, seen.device_count))
    for what, planned, found in rows:
        if planned != found:
            return Difference(what, str(planned), str(found))
    return None


def _allows_accelerator(platforms: str) -> bool:
    return not platforms or any(name.strip() in ACCELERATORS for name in platforms.split(","))
