"""Pictures of clusters that do not run, for what shows them: built from the same models as real ones."""

from collections.abc import Sequence
from functools import cache
from typing import Any

from eray._core.phase import Phase
from eray._core.picture import Ending, NodeView, Picture, Span, Track
from eray._core.topology import Device, Node, Process, Restart, Topology, World

BEGAN = 1_700_000_000.0


def node_name(rank: int) -> str:
    """Return the name of a node."""
    return f"node{rank + 1:04}"


def picture(
    *,
    node_count: int = 2,
    per_node: int = 2,
    devices: int = 4,
    phase: str = "up",
    world_phase: Phase = Phase.RUNNING,
    states: Sequence[str] | None = None,
    failure: str | None = None,
    restarts: Sequence[Restart] = (),
    awaited: Sequence[int] = (),
    ending: Ending | None = None,
    **more: Any,
) -> Picture:
    """Return a cluster with one world ``main``; ``states`` are its processes', ``awaited`` ranks did not report."""
    count = node_count * per_node
    split = devices // per_node if per_node and devices % per_node == 0 else 0
    nodes = tuple(
        Node(
            node_rank=rank,
            name=node_name(rank),
            hostname=node_name(rank),
            address=f"10.0.{rank // 256}.{rank % 256}",
            ray_node_id=f"{rank:056x}",
            devices=tuple(Device(ordinal=d, token=str(d), kind="H200", platform="cuda") for d in range(devices)),
            cpus=64,
            memory_bytes=512 << 30,
        )
        for rank in range(node_count)
        if rank not in awaited
    )
    states = states or ["running"] * count
    processes = tuple(
        Process(
            process_index=index,
            node_rank=index // per_node,
            node=node_name(index // per_node),
            local_index=index % per_node,
            pid=1000 + index,
            visible=tuple(str(d) for d in range(devices)),
            local_device_ids=tuple(range(index % per_node * split, (index % per_node + 1) * split)) or None,
            device_rule="split" if split else "none",
            state=state,
        )
        for index, state in enumerate(states)
        if state != "awaited"
    )
    world = World(
        name="main",
        generation=1 + len(restarts),
        process_count=count,
        phase=world_phase,
        coordinator_address="10.0.0.0:40001" if world_phase is not Phase.FORMING else None,
        processes=processes,
        failure=failure,
        timeline=((Phase.FORMING, BEGAN + 4.0), (world_phase, BEGAN + 6.0)),
        restarts=tuple(restarts),
    )
    topology = Topology(job={"id": "7"}, head=node_name(0), nodes=nodes, worlds=(world,))
    views = tuple(
        NodeView(
            node_rank=rank,
            name=node_name(rank),
            state="awaited" if rank in awaited else "ready",
            since=None if rank in awaited else BEGAN + 3.0 + rank % 7 / 10,
        )
        for rank in range(node_count)
    )
    fields: dict[str, Any] = {
        "taken_at": BEGAN + 60.0,
        "began_at": BEGAN,
        "phase": phase,
        "key": "7",
        "job": "7",
        "cluster": "rig",
        "head": node_name(0),
        "nodes": views,
        "topology": topology,
        "tracks": () if "tracks" in more else tracks(node_count, per_node),
        "ending": ending,
        "versions": {"eray": "0.1.0", "ray": "2.60.0", "jax": "0.10.2", "python": "3.11.2"},
        "environment": {"SLURM_JOB_ID": "7", "CUDA_VISIBLE_DEVICES": "0,1,2,3"},
        "remarks": ((BEGAN + 1.0, "waiting for node0002 to report to the head"),),
    }
    return Picture(**fields | more)


def tracks(node_count: int, per_node: int) -> tuple[Track, ...]:
    """Return a start in which everybody waits for the last node's raylet, and the processes for the last import."""
    found = []
    for rank in range(node_count):
        late = 0.5 * (rank == node_count - 1)
        spans = [("lock", 0.1, 0.2), ("raylet", 1.2 if rank else 0.2, 3.0 + late)]
        if rank == 0:
            spans = [("lock", 0.1, 0.2), ("gcs", 0.2, 1.2), ("raylet", 1.2, 3.0), ("coordinator", 3.0, 3.4)]
        found.append(Track(node=node_name(rank), node_rank=rank, spans=_spans(spans)))
        for local in range(per_node):
            index = rank * per_node + local
            last = 0.4 * (index == node_count * per_node - 1)
            ready = 3.5 + late
            own = [
                ("environment", 0.0, 0.05),
                ("import jax", 0.1, 3.0 + 2 * last),
                ("attach", ready, ready + 0.8),
                ("join", ready + 0.8, 5.0 + last),
                ("initialise", 5.1 + last, 5.2 + last),
                ("check", 5.2 + last, 5.4 + last),
                ("all running", 5.4 + last, 6.0),
            ]
            about = {"world": "main", "generation": 1, "process_index": index}
            found.append(Track(node=node_name(rank), node_rank=rank, spans=_spans(own), **about))
    return tuple(found)


def _spans(rows: Sequence[tuple[str, float, float]]) -> tuple[Span, ...]:
    return tuple(_span(*row) for row in rows)


@cache
def _span(name: str, begin: float, end: float) -> Span:
    return Span(name=name, begin=BEGAN + begin, end=BEGAN + end)
