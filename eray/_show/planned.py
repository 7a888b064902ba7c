"""What would be started on each node of an allocation, as a table; nodes that are alike share a row."""

from collections.abc import Sequence

from eray._show.wording import folded, folded_names

HEADINGS = ("node", "processes", "indexes", "devices of each")
UNKNOWN = (
    "which GPUs a process sees, and whether all nodes have as many: in the job `srun --ntasks-per-node=1 eray plan` "
    "tells"
)


def planned_rows(
    nodes: Sequence[str], per_node: Sequence[int], there: int | None, each: int | None, override: str | None
) -> list[tuple[str, ...]]:
    """Return rows under ``HEADINGS``: nodes, how many processes each has, their indexes, and the devices of one.

    Args:
        nodes: the names, in the order of the processes.
        per_node: how many processes each node has.
        there: how many devices the job has on each, None where that is not known.
        each: how many of them a process was promised, None for equal parts.
        override: ERAY_DEVICES.
    """
    groups: dict[int, tuple[list[str], list[int]]] = {}
    following = 0
    for node, count in zip(nodes, per_node, strict=True):
        names, indexes = groups.setdefault(count, ([], []))
        names.append(node)
        indexes.extend(range(following, following + count))
        following += count
    return [
        (folded_names(names), str(count), folded(indexes) or "-", _devices(count, there, each, override))
        for count, (names, indexes) in groups.items()
    ]


def _devices(count: int, there: int | None, each: int | None, override: str | None) -> str:
    if not count:
        return "-"
    if override is not None:
        return f"as ERAY_DEVICES={override} says"
    if there is None:
        return f"{each}" if each else "not known here"
    if not there:
        return f"{each} of the CPU's" if each else "no GPU from Slurm"
    if count * (each or 1) > there:
        return f"too few: {there} for {count}" + (f" x {each}" if each else "")
    if each is None and there % count:
        return f"{there} are not divided by {count}"
    size = each or there // count
    return f"all {there}" if size == there else f"{size} of {there}"
