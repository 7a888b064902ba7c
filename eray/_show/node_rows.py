"""Bring together what is known of each node: the head's view, the coordinator's node, its devices and processes."""

from dataclasses import dataclass
from functools import cached_property

from eray._core.picture import NodeView, Picture
from eray._core.topology import Node
from eray._show.ownership import Cell, Claim, cells, claims_by_node, state_of

TROUBLED = frozenset({"dead", "shared", "awaited", "lost"})


@dataclass(frozen=True)
class NodeRow:
    """One node; ``node`` is None before the coordinator knows it."""

    view: NodeView
    node: Node | None
    cells: tuple[Cell, ...]
    claims: tuple[Claim, ...]

    @cached_property
    def states(self) -> frozenset[str]:
        """Every state that the node, a device or a process of it is in."""
        processes = (state_of(claim.process) for claim in self.claims)
        return frozenset({self.view.state, *(cell.holding for cell in self.cells), *processes})

    @property
    def troubled(self) -> bool:
        """Tell whether somebody should look at it."""
        return not self.states.isdisjoint(TROUBLED)


def node_rows(picture: Picture) -> tuple[NodeRow, ...]:
    """Return every node that the head or the coordinator knows, by rank; a node that Ray calls dead is ``lost``."""
    known = {} if picture.topology is None else {node.node_rank: node for node in picture.topology.nodes}
    views = {view.node_rank: view for view in picture.nodes}
    for rank, node in known.items():
        view = views.get(rank) or NodeView(node_rank=rank, name=node.name, state="ready")
        gone = not node.alive and view.state != "lost"
        reason = "Ray says that it is dead"
        views[rank] = view.model_copy(update={"state": "lost", "reason": reason}) if gone else view
    claims = claims_by_node(picture)
    return tuple(
        NodeRow(views[rank], known.get(rank), cells(known.get(rank), found), tuple(found))
        for rank in sorted(views)
        for found in [claims.get(rank, [])]
    )
