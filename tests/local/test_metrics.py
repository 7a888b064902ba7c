"""What a Prometheus would see of a cluster, at the endpoint that Ray opens."""

import json
import re
import signal
from pathlib import Path

import pytest
from commands import Running
from doors import ask
from laptop import Laptop, await_text, until

from eray._core.metrics import JOB, METRICS
from eray._core.phase import Phase

pytestmark = [pytest.mark.ray, pytest.mark.jax]

PROGRAM = Path(__file__).parent / "programs" / "measured.py"
LINE = re.compile(r"ray_(eray_\w+){(.*)} (\S+)")
TAG = re.compile(r'(\w+)="([^"]*)"')
OURS = {tag for metric in METRICS for tag in metric.tags}
RAYS_OWN_PORT = 44227
Values = dict[tuple[str, ...], float]


def scraped(endpoint: tuple[str, int]) -> tuple[Values, set[str]]:
    """Return each of eray's values by name and tags of its own, and the jobs that they are of."""
    status, body = ask(endpoint, "GET", "/metrics")
    assert status == 200
    values, jobs = Values(), set()
    for name, tags, value in LINE.findall(body):
        found = dict(TAG.findall(tags))
        jobs.add(found[JOB])
        if "le" not in found:
            values[(name, *(found[tag] for tag in found if tag in OURS))] = float(value)
    return values, jobs


def shows(endpoint: tuple[str, int], driver: Running, wanted: Values) -> None:
    """Wait until one answer of the endpoint has all that is wanted."""
    until(
        lambda: scraped(endpoint)[0].items() >= wanted.items() or None,
        20.0,
        lambda: f"{wanted.items() - scraped(endpoint)[0].items()} of {scraped(endpoint)}, {driver.output}",
    )


def cluster(phase: str, *, epoch: int, notice: int) -> Values:
    """Return the gauges of one node with a world of one process, and one of three that was started again once."""
    return {
        ("eray_nodes",): 1,
        ("eray_nodes_expected",): 1,
        **{("eray_worlds", each.value): int(each in (phase, Phase.FORMING)) for each in Phase},
        ("eray_processes_joined", "mine"): 1,
        ("eray_processes_expected", "mine"): 1,
        ("eray_world_generation", "mine"): 1,
        ("eray_processes_joined", "other"): 0,
        ("eray_processes_expected", "other"): 3,
        ("eray_world_generation", "other"): 2,
        ("eray_restarts",): 1,
        ("eray_preemption_notice",): notice,
        ("eray_coordinator_epoch",): epoch,
    }


def test_prometheus_sees_worlds_run_and_end_and_a_new_life_of_the_coordinator(laptop: Laptop) -> None:
    end = laptop.root / "work" / "end"
    up = laptop.eray("up", RAY_metrics_report_interval_ms="1000")
    await_text(up, "export RAY_API_SERVER_ADDRESS=")
    exports = dict(line.removeprefix("export ").split("=", 1) for line in up.output.splitlines() if "export " in line)
    driver = laptop.python(PROGRAM, end, **exports)
    await_text(driver, "metrics at ")
    host, port = driver.output.partition("metrics at ")[2].split()[:2]
    endpoint = host, int(port)

    joins: Values = {("eray_join_seconds_count", "planned"): 1, ("eray_join_seconds_count", "running"): 1}
    shows(endpoint, driver, cluster("running", epoch=1, notice=0) | joins)
    jobs = scraped(endpoint)[1]
    assert len(jobs) == 1
    assert jobs.pop().startswith("local-")

    host_of_dashboard, _, port_of_dashboard = exports["RAY_API_SERVER_ADDRESS"].removeprefix("http://").rpartition(":")
    token = {"Authorization": f"Bearer {Path(exports['RAY_AUTH_TOKEN_PATH']).read_text()}"}
    dashboard = host_of_dashboard, int(port_of_dashboard)
    written = next(laptop.root.glob("eray-*/**/prom_metrics_service_discovery.json"))

    def listed() -> set[int] | None:
        # Ray writes the file every 5 s, and for the first time perhaps before it knows the node.
        (in_file,) = json.loads(written.read_text())
        told = json.loads(ask(dashboard, "GET", "/api/prometheus/sd", token)[1])
        ports = {int(target.rpartition(":")[2]) for target in in_file["targets"]}
        return ports if told == [in_file] and endpoint[1] in ports else None

    ports = until(listed, 20.0, lambda: f"{endpoint} in {written.read_text()}")
    assert RAYS_OWN_PORT not in ports
    assert {ask((host, each), "GET", "/metrics")[0] for each in ports} == {200}

    end.touch()
    driver.wait(20).check()
    shows(endpoint, driver, cluster("closed", epoch=2, notice=1))
    end.unlink()
    up.signal(signal.SIGTERM)
    assert up.wait(10).returncode == 143
