"""The command ``eray``: one file a command, imported only when it is the one asked for."""

import argparse
import importlib
import os
import signal
import sys
from collections.abc import Collection, Sequence
from typing import Any

from eray._io.log_lines import LOG_FORMAT, host_of, log_command, log_settings
from eray.errors import ErayError

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
    "logs": "why a job failed, where its logs are, and the end of the one that explains it",
    "report": "one HTML page of a cluster: nodes, devices, processes, the start, what is wrong and what to do",
    "completion": "a script that completes eray's commands and options in a shell",
}


OF_OTHERS = {
    **dict.fromkeys(("--np", "--nproc", "--num-processes", "--ntasks"), "--processes"),
    **dict.fromkeys(("--nproc-per-node", "--nproc_per_node", "--ntasks-per-node"), "--processes-per-node"),
    **dict.fromkeys(("--gpus-per-task", "--gpus-per-process"), "--devices-per-process"),
}
"""What `mpirun`, `torchrun` and `srun` call an option."""
ALIKE = 0.7
"""From which likeness on, of 0 to 1, a word is taken for a misspelled one."""


class _Formatter(argparse.HelpFormatter):
    def _format_args(self, action: argparse.Action, default_metavar: str) -> str:
        """Show ``-- CMD …`` where the program stands: argparse would write ``...``."""
        if action.nargs == argparse.REMAINDER and isinstance(action.metavar, str):
            return action.metavar
        return super()._format_args(action, default_metavar)


class CommandParser(argparse.ArgumentParser):
    """Refuses options that it does not know with its own usage: argparse would show that of ``eray`` alone."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{"formatter_class": _Formatter, "allow_abbrev": False, **options})

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse, and end with code 2 where something is left."""
        parsed, left = super().parse_known_args(args, namespace)
        if left:
            self.error(f"unrecognized arguments: {' '.join(left)}{self._meant(left)}")
        return parsed, left

    def _meant(self, left: Sequence[str]) -> str:
        """Return the option that the first of these words is nearly, as a question."""
        word = left[0].partition("=")[0]
        known = [name for action in self._actions if action.help != argparse.SUPPRESS for name in action.option_strings]
        longer = [name for name in known if word.startswith("--") and name.startswith(word)]
        return _meant_by(word, known, [name for name in known if name == OF_OTHERS.get(word)] or longer)


def _meant_by(word: str, known: Collection[str], longer: Collection[str] = ()) -> str:
    """Return what the word is nearly, as a question; those that are ``longer`` come first."""
    from difflib import get_close_matches

    close = longer or get_close_matches(word, known, n=1, cutoff=ALIKE)
    return f"; did you mean {' or '.join(close)}?" if close else ""


def _warn() -> None:
    """Say which variables are misspelled."""
    from eray._ray.notices import say
    from eray._slurm.membership import misspellings

    for line in misspellings(os.environ):
        say(line)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    named = [word for word in arguments if not word.startswith("-")][:1]
    parser = command_parser(named)
    try:
        if not arguments:
            parser.print_help(sys.stderr)
        if named and named[0] not in COMMANDS and arguments[0] in (named[0], "--log-json"):
            meant = _meant_by(named[0], COMMANDS) or f"; the commands are {', '.join(COMMANDS)}"
            parser.error(f"{named[0]!r} is no command{meant}")
        args = parser.parse_args(arguments)
        if args.log_json:
            os.environ[LOG_FORMAT] = "json"  # the processes that it starts write the same
        # Nothing else is read here: the command reads the rest, and says what is wrong with it.
        log_command(log_settings(os.environ), host_of(os.environ))
        if args.command != "node" and not getattr(args, "led", False):
            _warn()
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


def command_parser(loaded: Collection[str] = tuple(COMMANDS)) -> argparse.ArgumentParser:
    """Return the parser of all commands; those in ``loaded`` have their options, the others only their names."""
    parser = CommandParser(prog="eray", description="Ray inside a Slurm allocation, for JAX.")
    parser.add_argument("--version", action=_Version, help="show the versions of eray, Ray, JAX and Python, and exit")
    parser.add_argument(
        "--log-json", action="store_true", help="write the log as JSON, one object a line (ERAY_LOG tells how much)"
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, meaning in COMMANDS.items():
        command = commands.add_parser(name, help=meaning, description=meaning)
        if name in loaded:
            module = importlib.import_module(f"eray._cli.{name}")
            module.add_arguments(command)
            command.set_defaults(run=module.run)
    return parser


class _Version(argparse.Action):
    def __init__(self, option_strings: Sequence[str], dest: str, **known: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, **known)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from eray._cli.version import versions

        print(versions())
        parser.exit()
