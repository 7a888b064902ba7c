"""What a member of a world may do, and what its cluster shows to those who are none."""

import json
import os
import re
import sys
from pathlib import Path

import pytest
from laptop import EXAMPLES, Laptop, await_text, lines_of

pytestmark = [pytest.mark.ray, pytest.mark.jax]

PROGRAMS = Path(__file__).parent / "programs"


@pytest.mark.parametrize("attach", ["connect", "demand"])
def test_connection_of_two_processes(laptop: Laptop, attach: str) -> None:
    words = ("run", "-n", "2", "--", "python", PROGRAMS / "member.py")
    result = laptop.eray(*words, ERAY_ATTACH=attach).wait().check()
    said = lines_of(result)
    assert "all is well" in said[0]
    assert "all is well" in said[1]
    assert result.stderr.count("a fork of a connected process must end by os._exit()") == 2
    late = next(line for line in said[0] if line.startswith("late:"))
    assert re.fullmatch(r"late: barrier 'late': process 1 \(\S+\) did not arrive within 0\.5 s", late)


def test_topology_for_drivers_without_eray(laptop: Laptop, tmp_path: Path) -> None:
    run = laptop.eray("run", "-n", "2", "--", "python", PROGRAMS / "stay.py", tmp_path / "end")
    for index in range(2):
        await_text(run, f"process {index} is in")
    about = json.loads((laptop.run_directory() / "node.json").read_text())
    access = {
        "RAY_ADDRESS": about["gcs_address"],
        "RAY_AUTH_MODE": about["auth"],
        "RAY_AUTH_TOKEN_PATH": about["token_path"],
    }
    driver = laptop.python("-I", PROGRAMS / "topology_without_eray.py", **access)
    inspector = laptop.python("-I", EXAMPLES / "inspect_cluster.py", **access)
    topology = json.loads(driver.wait().check().stdout)
    inspected = inspector.wait().check().stdout
    (tmp_path / "end").touch()
    run.wait().check()

    assert topology["api_version"] == 1
    (node,) = topology["nodes"]
    assert node["name"] == topology["head"]
    assert (node["node_rank"], node["alive"], node["devices"]) == (0, True, [])
    assert node["cpus"] == len(os.sched_getaffinity(0))
    (world,) = topology["worlds"]
    assert (world["name"], world["generation"], world["process_count"]) == ("main", 1, 2)
    assert (world["phase"], world["failure"]) == ("running", None)
    assert [phase for phase, _ in world["timeline"]][-1] == "running"
    for index, process in enumerate(world["processes"]):
        assert (process["process_index"], process["local_index"], process["node_rank"]) == (index, index, 0)
        assert (process["state"], process["device_rule"], process["local_device_ids"]) == ("running", "none", None)
    assert len({process["pid"] for process in world["processes"]}) == 2
    assert re.search(r"^world main generation 1: running$", inspected, re.MULTILINE)
    assert re.search(r"^  process 1 on node 0, pid \d+: running", inspected, re.MULTILINE)


JAX_STAYS_OUT = """
import sys, eray
with eray.connect(jax=False) as conn:
    conn.barrier("both")
    assert conn.coordinator_address is None
    assert "jax" not in sys.modules
    print(conn, flush=True)
"""

ATTACH = """
import sys, eray
cluster = eray.attach()
assert eray.coordinator() == cluster.coordinator
print("jax" in sys.modules, [world.phase.value for world in cluster.topology().worlds], flush=True)
"""


WITHOUT_RAY = """
import sys, eray
conn = eray.connect()
conn.barrier("both")
assert "ray" not in sys.modules
print(conn, flush=True)
import ray
try:
    ray.put(1)
except ray.exceptions.RaySystemError:
    print("no cluster of its own", flush=True)
print(eray.coordinator() is not None, ray.get(ray.put(1)), flush=True)
"""


def test_process_imports_ray_only_on_demand(laptop: Laptop) -> None:
    run = laptop.eray("run", "-n", "2", "--", "python", "-c", WITHOUT_RAY, ERAY_ATTACH="demand")
    said = lines_of(run.wait().check())
    for index in range(2):
        assert f"<eray.Connection process {index} of 2 " in said[index][0]
        assert said[index][1:] == ["no cluster of its own", "True 1"]


def test_connect_without_jax(laptop: Laptop) -> None:
    said = lines_of(laptop.eray("run", "-n", "2", "--", "python", "-c", JAX_STAYS_OUT).wait().check())
    for index in range(2):
        assert f"<eray.Connection process {index} of 2 in world 'main' generation 1 on " in said[index][0]


def test_attach_from_a_process_of_the_run_that_is_no_member(laptop: Laptop) -> None:
    said = lines_of(laptop.eray("run", "-n", "1", "--", "python", "-c", ATTACH).wait().check())
    assert said[0] == ["False ['forming']"]


def test_attach_without_a_cluster_says_how_to_get_one(laptop: Laptop) -> None:
    result = laptop.python("-c", "import eray; eray.attach()").wait()
    assert result.returncode != 0
    assert "no cluster in the environment; start one by `eray up` or `eray run`, or set RAY_ADDRESS" in result.stderr
    assert sys.executable in result.command
