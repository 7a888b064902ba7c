"""The plan of a world: where each process stands and which devices it takes, decided once for all of them."""

from collections.abc import Mapping, Sequence

from eray._core.blocks import Blocks
from eray._core.devices import NodeView, ProcessView, plan_node
from eray._core.topology import Node
from eray._core.world import Facts, Failure, Member, Place, WorldState, failed
from eray.errors import ConfigurationError, WorldContradictionError, error_data

Indexed = tuple[int, Facts]  # process_index, facts


def planned(world: WorldState, nodes: Mapping[int, Node], now: float) -> WorldState:
    """Return the world with a place for each process, or failed where its nodes' devices cannot be divided.

    A problem on one node leaves the devices of all processes undecided. All processes must have joined.
    """
    by_node: dict[tuple[int | None, str], list[Indexed]] = {}
    for process_index, member in enumerate(world.members):
        if member is None:
            raise AssertionError(f"process {process_index} has not joined")
        by_node.setdefault((member.facts.node_rank, member.facts.node), []).append((process_index, member.facts))
    ranks = _ranks(list(by_node), nodes)
    places: dict[int, Place] = {}
    try:
        for key, processes in by_node.items():
            places.update(_places(world.name, key[1], ranks[key], processes))
    except (ConfigurationError, WorldContradictionError) as exc:
        return failed(world, Failure(cause=str(exc), at=now, error=error_data(exc)))
    members: list[Member | None] = [
        member and member.model_copy(update={"place": places[process_index]})
        for process_index, member in enumerate(world.members)
    ]
    return world.model_copy(update={"members": Blocks(members), "planned": True})


def _ranks(keys: Sequence[tuple[int | None, str]], nodes: Mapping[int, Node]) -> dict[tuple[int | None, str], int]:
    """Return each node's rank: what its processes say, else the coordinator's node of that name, else the next."""
    named = {node.name: rank for rank, node in nodes.items()}
    ranks = {key: key[0] if key[0] is not None else named.get(key[1], -1) for key in keys}
    following = max([-1, *ranks.values(), *nodes]) + 1
    for key, rank in ranks.items():
        if rank < 0:
            ranks[key], following = following, following + 1
    return ranks


def _places(world: str, node: str, rank: int, processes: Sequence[Indexed]) -> dict[int, Place]:
    """Return the places of one node's processes."""
    local_count = _agreed(world, f"the number of processes on {node}", [facts.local_count for _, facts in processes])
    local = {
        index: order if facts.local_index is None else facts.local_index
        for order, (index, facts) in enumerate(processes)
    }
    count = len(processes) if local_count is None else local_count
    if len(set(local.values())) < len(local) or not all(0 <= at < count for at in local.values()):
        listed = ", ".join(str(local[index]) for index, _ in processes)
        raise WorldContradictionError(world, f"the local index on {node}", f"each of 0 to {count - 1} once", listed)
    counted = {facts.hardware_count for _, facts in processes if facts.hardware_count is not None}
    view = NodeView(
        node=node,
        local_count=count,
        in_step=any(facts.in_step for _, facts in processes),
        gpus_on_node=_agreed(world, f"GPUs on {node}", [facts.gpus_on_node for _, facts in processes]),
        # Cgroups may show each process another number of devices: then none of them is the node's.
        hardware_count=counted.pop() if len(counted) == 1 else None,
        override=None,
        processes=tuple(_view(local[index], facts) for index, facts in processes),
    )
    shares = {share.local_index: share for share in plan_node(view)}
    return {
        index: Place(
            node_rank=rank,
            local_index=at,
            local_device_ids=shares[at].local_device_ids,
            device_rule=shares[at].rule,
        )
        for index, at in local.items()
    }


def _view(local_index: int, facts: Facts) -> ProcessView:
    return ProcessView(
        local_index=local_index,
        visible=facts.visible,
        uuids=facts.uuids,
        assigned=facts.assigned,
        override=facts.override,
    )


def _agreed(world: str, what: str, values: Sequence[int | None]) -> int | None:
    """Return the one number that the processes of a node report, None where none does."""
    known = sorted({value for value in values if value is not None})
    if len(known) > 1:
        raise WorldContradictionError(world, what, str(known[0]), str(known[1]))
    return known[0] if known else None
