"""Open pages in Debian's Chromium, without a window, and keep what they look like."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ARTEFACTS = "ERAY_TEST_ARTEFACTS"
NAMES = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    """A browser of its own for a module: Playwright keeps an event loop running in this thread while it is open."""
    if os.environ.get("ERAY_TEST_INSTALL") == "1" and not _chromium() and shutil.which("apt-get") and not os.geteuid():
        subprocess.run(["apt-get", "update", "-q"], check=True, stdout=subprocess.DEVNULL, timeout=120)
        command = ["apt-get", "install", "-y", "-q", "--no-install-recommends", "chromium"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=170)
    if (program := _chromium()) is None:
        pytest.skip("no Chromium here: `apt-get install chromium` (Debian), or set ERAY_TEST_INSTALL=1 as root")
    reason = "Playwright is not installed: `pip install -e '.[test]'`"
    playwright = pytest.importorskip("playwright.sync_api", reason=reason)
    with playwright.sync_playwright() as running:
        sandbox = [] if os.geteuid() else ["--no-sandbox"]  # Chromium's needs a user other than root
        opened = running.chromium.launch(executable_path=program, args=[*sandbox, "--disable-dev-shm-usage"])
        try:
            yield opened
        finally:
            opened.close()


@pytest.fixture
def artefacts(tmp_path: Path) -> Path:
    """The directory in which screenshots stay."""
    path = Path(os.environ.get(ARTEFACTS) or tmp_path)
    path.mkdir(parents=True, exist_ok=True)
    return path


def _chromium() -> str | None:
    return next(filter(None, map(shutil.which, NAMES)), None)
