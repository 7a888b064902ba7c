"""Start ``eray`` once on every node of the allocation, by one srun step, and pass on its output, signals and code."""

import argparse
import logging
import os
import secrets
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence

from eray._bringup import head_error
from eray._cli.relay import Relay
from eray._cli.start_mark import StartMark
from eray._core import naming
from eray._io.secret import ensure_secret
from eray._settings import Settings
from eray._slurm.allocation import read_allocation
from eray._slurm.environment import Job, SlurmEnvironment
from eray._slurm.srun import step_command
from eray._slurm.variables import NODENAME
from eray.errors import ConfigurationError, DirectoryError, SecretError, UsageError

logger = logging.getLogger(__name__)

LED = "--led"
HOME_S = 2.0
"""How long the home may take to show the secret."""


def run_step(
    name: str, words: Sequence[str], environ: Mapping[str, str], *, dry_run: bool, no_kill: bool = False
) -> int:
    """Run ``eray NAME WORDS`` in one step over the allocation and return its exit code.

    ``no_kill`` lets it outlive a node that dies.
    The step gets an ERAY_SECRET where none is set, so that nodes need no common home.
    """
    argv = [sys.executable, "-P", "-m", "eray", name, LED, *words]
    settings, allocation = Settings.from_environ(environ), read_allocation(environ)
    here = {environ.get(NODENAME), socket.gethostname()}
    if allocation.nodes[0] in here and (error := head_error(settings.head, allocation.nodes)) is not None:
        raise error  # elsewhere the step finds it
    command = step_command(allocation, argv, environ, no_kill=no_kill)
    if dry_run:
        print(command)
        return 0
    env = {**command.env, "ERAY_SECRET": _secret(settings, allocation.job)}
    with StartMark(name, allocation.job, settings), Relay(settings.preemption_signals) as relay:
        try:
            # In a session of its own: Ctrl-C reaches srun only through us, and means one thing there.
            child = subprocess.Popen(command.argv, env=env, stdin=subprocess.PIPE, start_new_session=True)
        except OSError as exc:
            raise ConfigurationError(
                f"srun cannot be started ({exc.strerror}); load Slurm's module, or start `srun eray {name} …` yourself"
            ) from exc
        relay.to(child)
        code = child.wait()
    if code < 0:
        job, ended = allocation.job.id, f"was ended by {signal.Signals(-code).name}"
        found = f"srun (pid {child.pid} on {socket.gethostname()}), which held the step of `eray {name}`, {ended}"
        remedy = f"see by `squeue --steps --jobs={job}` whether the step still runs, and end it by `scancel {job}`"
        print(f"eray: {found}; {remedy}", file=sys.stderr)
    return code if code >= 0 else 128 - code


def _secret(settings: Settings, job: Job) -> str:
    """Return the step's secret: the user's, one that the login node can derive too, or one that nobody else knows."""
    if settings.secret is not None:
        return settings.secret
    if settings.auth == "disabled":
        return secrets.token_hex(32)  # which nobody asks for
    try:
        kept = ensure_secret(os.path.expanduser(settings.state_dir), HOME_S)
    except (SecretError, DirectoryError) as exc:  # the nodes need no home; only the login node would
        logger.info("the step's secret is random: %s", exc)
        return secrets.token_hex(32)
    return naming.launch_secret(kept, job.cluster, job.id, job.restart)


def add_step_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what ``run_step`` says to its tasks: that its word comes on standard input."""
    parser.add_argument(LED, action="store_true", help=argparse.SUPPRESS)


def step_of(slurm: SlurmEnvironment, what: str) -> None:
    """Check that this step has one task on each node: eray starts the processes itself.

    Raises:
        UsageError: it has more.
    """
    task = slurm.task
    assert task is not None
    if any(count != 1 for count in task.tasks_per_node):
        raise UsageError(
            f"`srun {what}` needs one task a node, node {task.node} has {task.local_count}: "
            f"add `--ntasks-per-node=1 -n{len(task.nodes)}`, or leave srun out"
        )
