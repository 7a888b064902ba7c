"""``eray completion``: a script that lets a shell complete eray's commands and options."""

import argparse
from collections.abc import Iterator, Mapping

SHELLS = ("bash", "zsh", "fish")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("shell", choices=SHELLS, help='for bash: `eval "$(eray completion bash)"` in ~/.bashrc')


def run(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    """Print the script. It is complete in itself: completing starts no Python."""
    del environ
    import shtab

    from eray._cli.main import command_parser

    parser = command_parser()
    for action in _positionals(parser):
        action.complete = shtab.FILE  # type: ignore[attr-defined]  # programs and their arguments
    print(shtab.complete(parser, shell=args.shell))
    return 0


def _positionals(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Yield what takes the words of a program, in this command and those below."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in dict.fromkeys(action.choices.values()):
                yield from _positionals(command)
        elif action.nargs == argparse.REMAINDER:
            yield action
