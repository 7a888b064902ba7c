"""A cluster that stays until a signal, and its drivers."""

import re
import signal

import pytest
from laptop import Laptop, await_text

pytestmark = [pytest.mark.ray, pytest.mark.jax]

DRIVER = """
import ray, eray
cluster = eray.attach()
nodes = cluster.topology().nodes
print(len(nodes), nodes[0].ray_node_id == ray.get_runtime_context().get_node_id(), nodes[0].alive)
with eray.connect(world="mine", process_count=1, process_index=0) as conn:
    print(conn.node == nodes[0], conn.generation, conn.device_rule)
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143)])
def test_up_serves_drivers_until_a_signal(laptop: Laptop, number: int, code: int) -> None:
    up = laptop.eray("up", ERAY_DASHBOARD="0")
    await_text(up, "export RAY_ADDRESS=")
    exports = dict(line.removeprefix("export ").split("=", 1) for line in up.output.splitlines() if "export " in line)
    assert exports["RAY_AUTH_MODE"] == "token"
    result = laptop.python("-c", DRIVER, **exports).wait().check()
    assert result.stdout.split("\n")[:2] == ["1 True True", "True 1 none"]
    listed, tail = (laptop.eray("logs", *words).wait(20).check().stdout for words in ([], ["--tail", "50"]))
    places = re.match(r"job local-\w+: logs live on this node in .*\n(.*/worker-.*\n)*job .* of Ray's there, ", listed)
    assert places, listed
    assert "ray start" not in tail
    up.signal(number)
    assert up.wait(10).returncode == code
