"""The command ``eray``: one file a command, imported only when it is the one asked for."""

import argparse
import importlib
import logging
import os
import signal
import sys
from collections.abc import Sequence

from eray._settings import Settings
from eray.errors import ErayError

LOG = "ERAY_LOG"
COMMANDS = {
    "run": "start Ray and the processes of a program on every node of the allocation, or on this machine",
    "up": "start Ray on every node of the allocation and stay until a signal",
    "submit": "run a program as a Ray Job on a cluster that is up, with its output and exit code",
    "jobs": "list or stop the Ray Jobs of a cluster",
    "env": "what a shell needs to reach a cluster with Ray's own commands",
    "node": "one node's supervisor; `run`, `up` and `connect()` start it",
    "plan": "what eray makes of the environment: nodes, head, ports, processes, devices, problems",
    "doctor": "what keeps eray from working on this host, and what to do about it",
    "status": "how a cluster is, while it runs and afterwards: nodes, worlds, who is awaited, what failed",
    "timeline": "what the start of a cluster and its worlds spent its time on; a trace of it for Perfetto",
    "logs": "where the logs of a job are, and the end of the one that explains its failure",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    parser = argparse.ArgumentParser(prog="eray", description="Ray inside a Slurm allocation, for JAX.")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    chosen = next((word for word in arguments if not word.startswith("-")), None)
    for name, meaning in COMMANDS.items():
        command = commands.add_parser(name, help=meaning, description=meaning)
        if name == chosen:
            module = importlib.import_module(f"eray._cli.{name}")
            module.add_arguments(command)
            command.set_defaults(run=module.run)
    try:
        args = parser.parse_args(arguments)
        log = {LOG: os.environ[LOG]} if LOG in os.environ else {}
        _configure_logging(Settings.from_environ(log).log)  # the command reads the rest, and says what is wrong with it
        code = int(args.run(args, os.environ))
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # `eray plan | head`: nobody reads on
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except ErayError as error:
        print(f"eray: {error}", file=sys.stderr)
        return error.exit_code
    except SystemExit as stop:  # argparse: 2 for wrong usage, 0 for --help
        return stop.code if isinstance(stop.code, int) else 2


def _configure_logging(level: str) -> None:
    logging.basicConfig(
        level=level.upper(), format="%(asctime)s.%(msecs)03d %(levelname)s %(name)s: %(message)s", datefmt="%H:%M:%S"
    )
