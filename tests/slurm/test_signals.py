"""Signals end everything within Slurm's KillWait (5 s on the rig), with the exit code that a shell expects."""

import signal
import time

import pytest
from slurm_rig import Rig
from rig_commands import Running
from worlds import WAIT, expect_nothing_left

pytestmark = [pytest.mark.slurm, pytest.mark.ray, pytest.mark.jax]
KILL_WAIT_S = 5.0


def wait_for_world(rig: Rig, started: Running) -> None:
    rig.wait_until(lambda: started.output.count("has joined") == 2, 40, "both processes to join")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_salloc_shell_signal_to_run(rig: Rig, number: signal.Signals, code: int) -> None:
