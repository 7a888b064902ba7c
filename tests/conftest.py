"""Leave out slow tests unless asked, skip those for an accelerator where there is none; CI insists on the rest."""

import gc
import os
from pathlib import Path

import pytest

ACCELERATORS = ("/dev/nvidia0", "/dev/kfd", "/dev/accel/accel0")
SKIP_ONLY = "ERAY_TEST_SKIP_ONLY"  # a marker: a test without it must not be skipped

FULL = "ERAY_TEST_FULL"

skipped: pytest.StashKey[list[str]] = pytest.StashKey()
left_out: pytest.StashKey[int] = pytest.StashKey()


def pytest_configure(config: pytest.Config) -> None:
    gc.disable()
    config.stash[skipped] = []
    config.stash[left_out] = 0


def pytest_collection_finish() -> None:
    """Collect garbage from here on only, and not among what lasts as long as the session: a fifth of the time."""
    gc.freeze()
    gc.set_threshold(20_000)
    gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if os.environ.get(FULL) != "1" and "full" not in config.getoption("-m"):
        slow = [item for item in items if item.get_closest_marker("full")]
        if slow:
            items[:] = [item for item in items if item not in slow]
            config.hook.pytest_deselected(items=slow)
            config.stash[left_out] = len(slow)
    if not any(Path(device).exists() for device in ACCELERATORS):
        reason = f"no accelerator here (none of {', '.join(ACCELERATORS)})"
        for item in items:
            if item.get_closest_marker("gpu"):
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item):  # type: ignore[no-untyped-def]
    outcome = yield
    report = outcome.get_result()
    if report.skipped and not hasattr(report, "wasxfail") and os.environ.get(SKIP_ONLY) not in (None, *report.keywords):
        item.config.stash[skipped].append(item.nodeid)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if session.config.stash[skipped] and not session.exitstatus:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if config.stash[left_out]:
        terminalreporter.write_line(f"{config.stash[left_out]} slow tests left out; {FULL}=1 or `-m full` runs them")
    for nodeid in config.stash[skipped]:
        terminalreporter.write_line(f"SKIPPED although {SKIP_ONLY}={os.environ[SKIP_ONLY]}: {nodeid}", red=True)
