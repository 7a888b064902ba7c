"""Bring a real Slurm of three nodes up once for the tests here, and take it down whatever happens."""

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

pytest.register_assert_rewrite("worlds")

from rig_share import ShareError, furnish  # noqa: E402
from slurm_rig import GUARD, GUEST, HELD, NODES, SCRIPT, USER, Rig, bring_up, owner  # noqa: E402

LOCK = "/run/eray-slurm-rig.lock"
HELD_S = 60.0
"""How long another's rig is waited for."""


@pytest.fixture(scope="session")
def slurm_cluster() -> Iterator[Rig]:
    """The running rig. Tests take ``rig``, which also ends what each of them started."""
    if reason := _why_not():
        pytest.skip(reason)
    with open(LOCK, "w") as lock:
        if not _locked(lock, timeout_s=60):
            pytest.skip(f"other tests use the Slurm rig ({owner()}); wait for them to end ({LOCK})")
        share = Path(tempfile.mkdtemp(prefix="eray-rig-", dir="/var/tmp"))
        guard = subprocess.Popen(
            ["/bin/sh", "-c", GUARD, SCRIPT, share, str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
            pass_fds=[lock.fileno()],
        )
        try:
            yield _up(share)
        finally:
            assert guard.stdin is not None
            guard.stdin.close()
            guard.wait(60)


@pytest.fixture
def rig(slurm_cluster: Rig) -> Iterator[Rig]:
    """The rig for one test; its commands and jobs are ended afterwards."""
    yield slurm_cluster
    slurm_cluster.clear()


def _up(share: Path) -> Rig:
    try:
        furnished = furnish(share, (USER, GUEST))
    except ShareError as exc:
        pytest.skip(str(exc))
    deadline = time.monotonic() + HELD_S
    while (done := bring_up(os.getpid())).returncode == HELD and time.monotonic() < deadline:
        time.sleep(1.0)
    if done.returncode:
        pytest.fail(f"the Slurm rig did not come up: {done.stderr or done.stdout}", pytrace=False)
    return Rig(tuple(f"node{n:02}" for n in range(1, NODES + 1)), furnished, f"RIG_SESSION={share.name}")


def _why_not() -> str | None:
    """Say why the rig cannot run here and what to do about it, or install it where we may."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "the Slurm rig needs root on Debian Linux"
    if not _installed() and os.environ.get("ERAY_TEST_INSTALL") == "1" and shutil.which("apt-get"):
        subprocess.run(["apt-get", "update", "-q"], check=True, stdout=subprocess.DEVNULL, timeout=120)
        subprocess.run([SCRIPT, "install"], check=True, stdout=subprocess.DEVNULL, timeout=170)
    if not _installed():
        return "Slurm is not installed: run `tests/slurm/slurm-rig install`, or set ERAY_TEST_INSTALL=1 (Debian)"
    namespaces = ["unshare", "--net", "--uts", "--ipc", "--mount", "--pid", "--fork", "true"]
    if subprocess.run(namespaces, capture_output=True, timeout=10).returncode:
        return "the Slurm rig needs Linux namespaces, which this container forbids; run it with --privileged"
    return None


def _installed() -> bool:
    programs = ("slurmctld", "slurmd", "munged", "srun", "ip", "setpriv")
    there = all(shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin") for name in programs)
    return there and subprocess.run(["id", USER, GUEST], capture_output=True, timeout=10).returncode == 0


def _locked(lock: IO[str], timeout_s: float) -> bool:
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.5)
