import json

import pytest
from pydantic import ValidationError

from eray._core.topology import API_VERSION, Device, Node, Phase, Process, Topology, World

GPU = Device(ordinal=0, token="GPU-8f3c", uuid="GPU-8f3c", kind="H200", platform="cuda")
NODE = Node(node_rank=1, name="node02", hostname="node02.site", address="10.0.0.2", devices=(GPU,), cpus=8)
PROCESS = Process(
    process_index=0, node_rank=1, local_index=0, pid=7, visible=("GPU-8f3c",), local_device_ids=(0,), state="running"
)
WORLD = World(
    name="main",
    generation=1,
    process_count=2,
    phase=Phase.FORMING,
    processes=(PROCESS,),
    timeline=((Phase.FORMING, 12.5),),
)
TOPOLOGY = Topology(job={"id": "42", "step": "0", "restart": 0}, head="node02", nodes=(NODE,), worlds=(WORLD,))


def test_topology_survives_json():
    data = json.loads(json.dumps(TOPOLOGY.model_dump(mode="json")))
    assert data["api_version"] == API_VERSION
    assert data["worlds"][0]["timeline"] == [["forming", 12.5]]
    assert Topology.model_validate(data) == TOPOLOGY


def test_topology_ignores_fields_of_a_newer_eray():
    data = TOPOLOGY.model_dump(mode="json") | {"weather": "fair"}
    data["nodes"][0]["mood"] = 3
    assert Topology.model_validate(data) == TOPOLOGY


def test_topology_is_frozen():
    with pytest.raises(ValidationError):
        TOPOLOGY.head = "node01"


def test_topology_finds_worlds_and_nodes():
    assert TOPOLOGY.world("main") == WORLD
    assert TOPOLOGY.world("other") is None
    assert TOPOLOGY.node(1) == NODE
    assert TOPOLOGY.node(0) is None


@pytest.mark.parametrize("token", ["3", "GPU-1", "MIG-7c", "MIG-GPU-1/3/0"])
def test_device_token_stays_text(token):
    assert Device(ordinal=0, token=token).token == token


@pytest.mark.parametrize(
    ("model", "data"),
    [
        (Node, {"node_rank": 0, "name": "n", "devices": [{"ordinal": 1, "token": "0"}]}),
        (Node, {"node_rank": -1, "name": "n"}),
        (Device, {"ordinal": 0, "token": 3}),
        (World, {"name": "w", "generation": 0, "process_count": 1, "phase": "forming"}),
        (World, {"name": "w", "generation": 1, "process_count": 1, "phase": "asleep"}),
        (World, WORLD.model_dump() | {"processes": (PROCESS, PROCESS)}),
        (World, WORLD.model_dump() | {"processes": (PROCESS.model_copy(update={"process_index": 2}),)}),
    ],
)
def test_model_refuses_what_cannot_be(model, data):
    with pytest.raises(ValidationError):
        model.model_validate(data)
