"""Which task is on which node, for messages about those that are awaited."""

import pytest

from eray._core.layout import task_layout

NAMES = ("n1", "n2", "n3")


@pytest.mark.parametrize(
    ("spoken", "nodes"),
    [
        ({0: (0, 1), 1: (2,), 2: (3,)}, ["n1", "n1", "n2", "n3"]),
        ({0: (0, 3), 1: (1,), 2: (2,)}, ["n1", "n2", "n3", "n1"]),
        ({0: (0, 1), 1: (2,)}, ["n1", "n1", "n2", "n3"]),
        ({0: (1,), 2: (0,)}, ["n3", "n1", "n2", "n2"]),
        ({0: (0, 1)}, None),  # two nodes are silent: which of them has process 2?
        ({0: (0, 1), 1: None, 2: (3,)}, None),
        ({0: None, 1: (2,)}, None),
    ],
)
def test_task_layout_nodes_by_index(spoken: dict[int, tuple[int, ...] | None], nodes: list[str] | None) -> None:
    layout = task_layout(spoken, NAMES, 4)
    assert (layout and [row[3] for row in layout]) == nodes
