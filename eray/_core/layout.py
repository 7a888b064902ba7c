"""Which process is on which node, from what the nodes say of their own tasks."""

from collections.abc import Mapping, Sequence

Row = tuple[int, int, int, str]


def task_layout(
    indexes_on_node: Mapping[int, Sequence[int] | None], names: Sequence[str], process_count: int
) -> list[Row] | None:
    """Return (node_rank, local_index, local_count, node) by process index, None where it is not known.

    ``indexes_on_node`` has the nodes that spoke, by rank, with None where they do not know. If a single one did not
    speak, it has the processes that are left.

    >>> task_layout({0: (0, 2)}, ("n1", "n2"), 3)
    [(0, 0, 2, 'n1'), (1, 0, 1, 'n2'), (0, 1, 2, 'n1')]
    """
    known = {rank: indexes for rank, indexes in indexes_on_node.items() if indexes}
    silent = [rank for rank in range(len(names)) if rank not in known]
    if len(silent) == 1 and silent[0] not in indexes_on_node:
        spoken = {index for indexes in known.values() for index in indexes}
        known[silent[0]] = [index for index in range(process_count) if index not in spoken]
    rows: dict[int, Row] = {}
    for rank, indexes in known.items():
        rows |= {index: (rank, at, len(indexes), names[rank]) for at, index in enumerate(indexes)}
    return [rows[index] for index in range(process_count)] if sorted(rows) == list(range(process_count)) else None
