"""Slurm's counts per node: ``2(x3),1`` is two on each of three nodes, then one."""

import re

from eray.errors import SlurmFormatError

MAX_NODES = 65_536  # Slurm's MAX_SLURM_NODES

_PART = re.compile(r"([0-9]{1,9})(?:\(x([0-9]{1,10})\))?")


def expand_counts(text: str, variable: str = "counts per node") -> tuple[int, ...]:
    """Expand Slurm's run-length counts: ``"2(x3),1"`` is ``(2, 2, 2, 1)``.

    Raises:
        SlurmFormatError: a part is neither ``N`` nor ``N(xM)``, or the counts are for more nodes than Slurm can have.
    """
    shown = text if len(text) <= 200 else text[:200] + "..."
    counts: list[int] = []
    for part in text.split(","):
        match = _PART.fullmatch(part.strip())
        repeat = int(match[2] or 1) if match else 0
        if match is None or repeat == 0:
            raise SlurmFormatError(variable, shown, f"{part.strip()!r} is not a count such as 2 or 2(x3)")
        if len(counts) + repeat > MAX_NODES:
            raise SlurmFormatError(variable, shown, f"{part.strip()!r} is for more than {MAX_NODES} nodes")
        counts.extend([int(match[1])] * repeat)
    return tuple(counts)
