"""A world that cannot come up: a process is missing, or its JAX is not as planned."""

import re
import socket

import pytest
from laptop import Laptop, lines_of

pytestmark = [pytest.mark.ray, pytest.mark.jax]

ONE_STAYS_AWAY = """
import os, signal, eray
if os.environ["ERAY_PROCESS_INDEX"] == "1":
    signal.pause()
try:
    eray.connect(jax=False)
except TimeoutError as exc:
    print(type(exc).__name__, exc, flush=True)
    raise
"""

ONE_ENDS_WELL = """
import os
if os.environ["ERAY_PROCESS_INDEX"] != "1":
    import eray
    eray.connect(jax=False)
"""

CONNECT = "import eray; eray.connect(); print('connected')"

JAX_FIRST = """
import socket, sys, jax, eray
if "distributed" in sys.argv:
    port = socket.create_server(("127.0.0.1", 0)).getsockname()[1]
    jax.distributed.initialize(f"127.0.0.1:{port}", 1, 0, cluster_detection_method="deactivate")
else:
    jax.numpy.zeros(3)
eray.connect()
"""


@pytest.mark.parametrize("attach", [pytest.param("connect", marks=pytest.mark.full), "demand"])
def test_process_that_never_comes_is_named_while_waiting_and_after(laptop: Laptop, attach: str) -> None:
    node = re.escape(socket.gethostname())
    variables = {"ERAY_JOIN_TIMEOUT_S": "14", "ERAY_ATTACH": attach}
    run = laptop.eray("run", "-n", "3", "--", "python", "-c", ONE_STAYS_AWAY, **variables)
    result = run.wait()
    assert result.returncode == 5
    waiting = rf"^eray: processes join: 2 of 3, missing process 1 \({node}\), \d+ s$"
    assert len(re.findall(waiting, result.stderr, re.MULTILINE)) == 1, result.stderr
    assert "waiting for" not in result.output, "the command says it, its processes do not"
    verdict = rf"world 'main': process 1 \({node}\) did not join within 14 s; see whether .* raise ERAY_JOIN_TIMEOUT_S"
    assert re.search(rf"^eray: {verdict}", result.stderr, re.MULTILINE)
    # The other of the two ends by its own error too, or in silence: the command has said why.
    own = [any(re.match(f"JoinTimeoutError {verdict}", line) for line in lines_of(result).get(i, [])) for i in (0, 2)]
    assert any(own), result.output


def test_process_that_ends_well_without_joining_is_named_at_once(laptop: Laptop) -> None:
    result = laptop.eray("run", "-n", "3", "--", "python", "-c", ONE_ENDS_WELL, ERAY_JOIN_TIMEOUT_S="90").wait(45)
    assert result.returncode == 5, result.output
    ended = rf"process 1 on {re.escape(socket.gethostname())} \(pid \d+\) ended with code 0 before it joined"
    words = (
        rf"^eray: world 'main' \(generation 1\) failed: {ended}; call eray\.connect\(\) in each process, or in none$"
    )
    assert len(re.findall(words, result.stderr, re.MULTILINE)) == 1, result.output


def test_jax_that_differs_from_the_plan_fails_the_world(laptop: Laptop) -> None:
    flags = "--xla_force_host_platform_device_count=3"
    run = laptop.eray("run", "-n", "2", "--devices-per-process", "2", "--", "python", "-c", CONNECT, XLA_FLAGS=flags)
    result = run.wait()
    assert result.returncode == 5
    assert "connected" not in result.stdout
    verdict = r"process \d on \S+: the plan says the number of local devices 2, JAX has 3; look at XLA_FLAGS"
    assert re.search(rf"^eray: (world 'main' \(generation 1\) failed: )?{verdict}", result.stderr, re.MULTILINE)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("distributed", "jax.distributed.initialize() was called before eray.connect(); remove that call"),
        ("backend", "a JAX backend was used before eray.connect() (jax.devices(), an array, …); call connect() first"),
    ],
)
def test_connect_after_jax_is_refused(laptop: Laptop, how: str, words: str) -> None:
    result = laptop.python("-c", JAX_FIRST, how).wait()
    assert result.returncode == 5
    assert f"JaxStateError: {words}" in result.stderr
