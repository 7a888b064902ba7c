"""The head's beacon is where the other nodes look for it."""

import asyncio
import socket
from dataclasses import dataclass, replace

import pytest
from test_nodespec import SPEC

from eray._core.rollcall import NodeReport
from eray._io import beacon
from eray._ray.nodes import Nodes

OWN, DIALLED = "127.0.0.2", "127.0.0.1"  # two addresses of one host


def report(rank: int) -> NodeReport:
    return NodeReport(
        rank, f"n{rank + 1}", "host", f"10.0.0.{rank + 1}", 7, "3.11.2", "2.60.0", "0.1.0", 8, 1, None, None
    )


@dataclass
class OwnNode:
    """What the roll of nodes asks of the head's own supervisor."""

    address: str

    def report(self) -> NodeReport:
        return report(0)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])


@pytest.mark.parametrize(("interface", "address", "dialled"), [(None, OWN, OWN), ("ib0", OWN, DIALLED)])
def test_beacon_is_found_by_the_heads_name_whatever_interface_was_chosen(interface, address, dialled):
    async def main() -> list[str]:
        spec = replace(SPEC, node_rank=0, node="n1", interface=interface, ports=(free_port(),))
        tasks = []
        nodes = Nodes(
            spec,
            OwnNode(address),
            reported=lambda each: None,
            said=lambda rank, message: None,
            lost=lambda rank, name: None,
            spawn=lambda task: tasks.append(asyncio.ensure_future(task)),
            show=lambda channel: asyncio.sleep(0),
        )
        server = await nodes.listen()
        try:
            channel = await beacon.dial(
                dialled,
                spec.ports,
                spec.credentials,
                node="n2",
                deadline_s=5.0,
                progress=lambda text: None,
            )
            await channel.send(report(1).to_dict())
            async with asyncio.timeout(5.0):
                while 1 not in nodes.connected:
                    await asyncio.sleep(0.01)
            await channel.close()
            return [each.name for each in nodes.roll.reports]
        finally:
            await server.close()

    assert "n2" in asyncio.run(main())
