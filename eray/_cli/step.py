"""Start ``eray`` once on every node of the allocation, by one srun step, and pass on its output, signals and code."""

import argparse
import contextlib
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence

from eray._settings import Settings
from eray._slurm.allocation import read_allocation
from eray._slurm.environment import SlurmEnvironment
from eray._slurm.srun import step_command
from eray.errors import ConfigurationError, UsageError

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
THE_USERS = (signal.SIGUSR1, signal.SIGUSR2)
LED = "--led"


def run_step(
    name: str, words: Sequence[str], environ: Mapping[str, str], *, dry_run: bool, no_kill: bool = False
) -> int:
    """Run ``eray NAME WORDS`` in one step over the allocation and return its exit code.

    ``no_kill`` lets it outlive a node that dies.
    The step gets a random ERAY_SECRET where none is set, so that nodes need no common home.
    """
    argv = [sys.executable, "-P", "-m", "eray", name, LED, *words]
    warnings = Settings.from_environ(environ).preemption_signals
    command = step_command(read_allocation(environ), argv, environ, no_kill=no_kill)
    if dry_run:
        print(command)
        return 0
    env = {"ERAY_SECRET": secrets.token_hex(32)} | command.env
    try:
        # In a session of its own: Ctrl-C reaches srun only through us, and means one thing there.
        child = subprocess.Popen(command.argv, env=env, stdin=subprocess.PIPE, start_new_session=True)
    except OSError as exc:
        raise ConfigurationError(
            f"srun cannot be started ({exc.strerror}); load Slurm's module, or start `srun eray {name} …` yourself"
        ) from exc
    with _relayed(child, warnings):
        code = child.wait()
    return code if code >= 0 else 128 - code


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


@contextlib.contextmanager
def _relayed(child: "subprocess.Popen[bytes]", warnings: Collection[str]) -> Iterator[None]:
    """Pass signals on by srun's standard input (``_ray/signals``); a second one of those that end ends it at once."""
    spared = {int(number) for number in ENDING if number.name.removeprefix("SIG") in warnings}  # once: it only warns
    ending: list[int] = []

    def relay(number: int, _: object) -> None:
        assert child.stdin is not None
        if number in spared:
            spared.discard(number)
        elif number in ENDING:
            ending.append(number)
        if len(ending) > 1:
            child.terminate()
            return
        with contextlib.suppress(OSError):  # srun has ended meanwhile
            os.write(child.stdin.fileno(), b"%d\n" % number)

    before = {number: signal.signal(number, relay) for number in (*ENDING, *THE_USERS)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
