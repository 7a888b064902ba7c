"""Read what the programs of these tests printed, and see that nothing is left of a world."""

import json
import re
import time
from dataclasses import dataclass
from typing import Any

from slurm_rig import Rig

WHO, FAIL = "programs/who.py", "programs/fail.py"
LIVES = f"""
if [ -z "$SLURM_RESTART_COUNT" ]; then
    eray run -- python {FAIL} -1 wait; echo first life $?; sleep 120
else
    eray run -- python {WHO}; echo second life $?
fi
"""
"""A script whose first life waits to be ended, and whose second ends well."""
GONE_S = 1.0
"""How long after a step's end a process of eray or Ray may still be seen."""


@dataclass(frozen=True)
class Printed:
    """What one world's ``who.py`` printed: its processes by index, and the topology."""

    processes: list[dict[str, Any]]
    topology: dict[str, Any]

    @property
    def places(self) -> list[tuple[str, int]]:
        """Node and local index of each process, by index, as the coordinator says."""
        return [(node, local_index) for node, local_index in self.topology["worlds"][0]["processes"]]

    @property
    def nodes(self) -> list[str]:
        """The cluster's nodes, the head first."""
        return [name for name, _, _ in self.topology["nodes"]]

    @property
    def tokens(self) -> list[list[str]]:
        """The devices that each node has, the head's first."""
        return [tokens for _, _, tokens in self.topology["nodes"]]

    @property
    def devices(self) -> list[tuple[str, list[int] | None]]:
        """Rule and ordinals of each process, by index."""
        return [(each["device_rule"], each["local_device_ids"]) for each in self.processes]


def read_worlds(output: str) -> list[Printed]:
    """Return the worlds whose ``who.py`` printed into ``output``, by key; each must be whole and agree with itself."""
    whos = [json.loads(text) for text in re.findall(r"who (\{.*\})", output)]
    topologies = [json.loads(text) for text in re.findall(r"topology (\{.*\})", output)]
    worlds = []
    for topology in sorted(topologies, key=lambda each: str(each["key"])):
        assert len(topology["worlds"]) == 1, topology
        world = topology["worlds"][0]
        count, address = world["process_count"], world["coordinator_address"]
        mine = sorted((each for each in whos if each["coordinator_address"] == address), key=_index)
        assert [each["process_index"] for each in mine] == list(range(count)), output
        assert [each["jax"] for each in mine] == [[index, count] for index in range(count)]
        assert [each["node"] for each in mine] == [node for node, _ in world["processes"]]
        addresses = {name: where for name, where, _ in topology["nodes"]}
        assert address.rpartition(":")[0] == addresses[mine[0]["node"]], "JAX's service is where process 0 is"
        worlds.append(Printed(mine, topology))
    assert sum(len(world.processes) for world in worlds) == len(whos), output
    return worlds


def read_world(output: str) -> Printed:
    """Return the one world that printed into ``output``."""
    worlds = read_worlds(output)
    assert len(worlds) == 1, output
    return worlds[0]


def expect_nothing_left(rig: Rig, within_s: float = GONE_S) -> None:
    """Check that no process of eray or Ray lives on any node a moment after the end, and no run directory is there."""
    deadline = time.monotonic() + within_s
    while (left := rig.leftover_processes()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert left == []
    assert rig.leftover_directories() == []


def seconds_since_failure(output: str) -> float:
    """Return how long ago ``fail.py`` failed."""
    times = set(re.findall(r"fails at ([0-9.]+)", output))  # it may be among the last lines that eray repeats
    assert len(times) == 1, output
    return time.monotonic() - float(times.pop())


def _index(who: dict[str, Any]) -> int:
    index: int = who["process_index"]
    return index
