"""Skip what needs an accelerator where there is none, and let CI insist that nothing else is skipped."""

import os
from pathlib import Path

import pytest

ACCELERATORS = ("/dev/nvidia0", "/dev/kfd", "/dev/accel/accel0")
SKIP_ONLY = "ERAY_TEST_SKIP_ONLY"  # a marker: a test without it must not be skipped

skipped: pytest.StashKey[list[str]] = pytest.StashKey()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[skipped] = []


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
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
    for nodeid in config.stash[skipped]:
        terminalreporter.write_line(f"SKIPPED although {SKIP_ONLY}={os.environ[SKIP_ONLY]}: {nodeid}", red=True)
