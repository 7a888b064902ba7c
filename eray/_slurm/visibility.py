"""The variables by which Slurm, Ray and users say which devices a process may see."""

import re
from collections.abc import Mapping

from eray.errors import SlurmContradictionError, SlurmFormatError

CUDA = "CUDA_VISIBLE_DEVICES"
HIP = "HIP_VISIBLE_DEVICES"
ROCR = "ROCR_VISIBLE_DEVICES"
ZE = "ZE_AFFINITY_MASK"

_TOKEN = re.compile(r"[0-9]{1,6}(?:\.[0-9]{1,6})*|(?:GPU|MIG)-[0-9A-Za-z/_-]+")
_NO_DEVICE = re.compile(r"|-[0-9]+|NoDevFiles")  # NoDevFiles: Slurm before 17.11, when no GPU was allotted


def visible_tokens(environ: Mapping[str, str]) -> tuple[str, ...] | None:
    """Return the devices that this process may see as given (``3``, ``GPU-...``, ``MIG-...``), None where unset.

    Slurm often sets the variables of all vendors at once, so the vendor cannot be read from them: CUDA's list counts,
    then HIP's, ROCR's, and Intel's mask. Like CUDA, the list ends at its first invalid entry (``""``, ``-1``).

    Raises:
        SlurmFormatError: an entry is neither an index nor a device name, or stands twice.
        SlurmContradictionError: CUDA's or HIP's list names more devices than ROCR's, within which ROCm counts.
    """
    lists = {name: _tokens(name, environ[name]) for name in (CUDA, HIP, ROCR, ZE) if name in environ}
    if not lists:
        return None
    chosen, tokens = next(iter(lists.items()))
    if chosen in (CUDA, HIP) and 0 < len(lists.get(ROCR, ())) < len(tokens):
        raise SlurmContradictionError(
            ((chosen, environ[chosen]), (ROCR, environ[ROCR])),
            f"on an AMD node {chosen} counts within {ROCR} and cannot name more devices; make them agree, or unset "
            f"{ROCR} on a node of another vendor",
        )
    return tokens


def ray_visibility(environ: Mapping[str, str]) -> dict[str, str | None]:
    """Return the changes to the environment that Ray needs on an AMD node; None means that the variable goes.

    Ray 2.60 refuses ``ROCR_VISIBLE_DEVICES`` unless ``HIP_VISIBLE_DEVICES`` is set too
    (``ray/_private/accelerators/amd_gpu.py``), and HIP counts within what ROCR leaves.

    Raises:
        SlurmFormatError: a list is malformed.
        SlurmContradictionError: HIP's list names devices that ROCR's has not.
    """
    if ROCR not in environ:
        return {}
    outer = _tokens(ROCR, environ[ROCR])
    if HIP not in environ:
        return {HIP: ",".join(outer), ROCR: None}
    inner = _tokens(HIP, environ[HIP])
    if not all(token.isdigit() and int(token) < len(outer) for token in inner):
        raise SlurmContradictionError(
            ((HIP, environ[HIP]), (ROCR, environ[ROCR])), f"{HIP} counts within {ROCR} and names a device beyond it"
        )
    return {HIP: ",".join(outer[int(token)] for token in inner), ROCR: None}


def _tokens(name: str, text: str) -> tuple[str, ...]:
    tokens: list[str] = []
    for part in text.split(","):
        token = part.strip()
        if _NO_DEVICE.fullmatch(token):
            break
        if not _TOKEN.fullmatch(token):
            raise SlurmFormatError(
                name, text, f"{token!r} is neither an index nor a GPU-... or MIG-... name; no device is the empty text"
            )
        if token in tokens:
            raise SlurmFormatError(name, text, f"{token!r} stands twice")
        tokens.append(token)
    return tuple(tokens)
