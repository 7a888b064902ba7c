"""Each test has a laptop of its own, which is as empty after it as before."""

import signal
import sys
from collections.abc import Iterator

import pytest
from laptop import PLAIN_RAY, Laptop, await_text, until


@pytest.fixture
def laptop() -> Iterator[Laptop]:
    """A place for one test; afterwards no process and no file of it may be left."""
    here = Laptop.make()
    try:
        yield here
        here.require_clean()
    finally:
        here.clear()


@pytest.fixture(scope="session")
def plain_ray() -> Iterator[str]:
    """The address of a Ray as a user starts it, stopped by its own handle."""
    here = Laptop.make()
    try:
        options = ["--port=0", f"--temp-dir={here.root}/r", "--num-cpus=2", "--include-dashboard=false"]
        start = [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block", *options]
        running = here.start(start, **PLAIN_RAY, RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S="0")
        await_text(running, "block forever")
        yield (here.root / "r" / "ray_current_cluster").read_text().strip()
        running.signal(signal.SIGTERM)
        running.wait(15)
        until(lambda: not here.processes() or None, 5.0, lambda: f"the end of {here.processes()}")
    finally:
        here.clear()
