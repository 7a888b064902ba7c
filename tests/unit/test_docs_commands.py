"""What the pages say of the command line is what its parsers take."""

import argparse
import importlib
import re
import shlex
from collections.abc import Iterator
from functools import cache
from itertools import groupby
from pathlib import Path

import pytest
from doc_pages import DOCS, ROOT, Block, blocks, pages, table_rows

from eray._cli.main import COMMANDS, command_parser

SHELL = [block for page in pages() for block in blocks(page) if block.language == "bash"]
STARTERS = {"srun", "exec", "nohup", "apptainer", "if", "until", "while", "!"}


@cache
def parser_of(name: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"eray {name}")
    importlib.import_module(f"eray._cli.{name}").add_arguments(parser)
    return parser


@cache
def whole_parser() -> argparse.ArgumentParser:
    return command_parser()


def eray_commands(script: str) -> Iterator[list[str]]:
    """Yield the words after ``eray`` of each of its commands in a shell script."""
    script = re.sub(r"(^|\s)#.*$", r"\1", script.replace("\\\n", " "), flags=re.MULTILINE)
    for text in [script, *re.findall(r"\$\((eray [^()]*)\)", script)]:
        lexer = shlex.shlex(text, posix=True, punctuation_chars="();<>|&\n")
        lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t", True, ""
        for is_operator, group in groupby(lexer, key=lambda word: word[0] in "();<>|&\n" if word else False):
            words = [] if is_operator else list(group)
            while words and re.match(r"[A-Za-z_]\w*=", words[0]):
                del words[0]
            names = [Path(word).name for word in words]
            if "eray" in names and (names[0] == "eray" or names[0] in STARTERS):
                yield words[names.index("eray") + 1 :]


def complaint(words: list[str], capsys: pytest.CaptureFixture[str]) -> str | None:
    """Return what is wrong with a command of eray's, None where it parses."""
    try:
        whole_parser().parse_args(words)
    except SystemExit as stop:
        said = capsys.readouterr().err
        return said if stop.code else None
    return None


@pytest.mark.parametrize("block", SHELL, ids=lambda block: block.place)
def test_commands_of_a_shell_block_parse(block: Block, capsys: pytest.CaptureFixture[str]) -> None:
    assert [found for words in eray_commands(block.text) if (found := complaint(words, capsys))] == []


def test_commands_are_found_in_a_script() -> None:
    script = """
        A=1 eray run -n 2 -- \\
            python x.py || exit   # eray nothing
        srun -N2 --ntasks-per-node=1 eray plan | grep eray
        eval "$(eray env --job 4711)"
        eray up > cluster.env & pip install eray
    """
    found = [["run", "-n", "2", "--", "python", "x.py"], ["plan"], ["up"], ["env", "--job", "4711"]]
    assert list(eray_commands(script)) == found


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_options_in_running_text_exist(page: Path) -> None:
    """`eray run --max-restarts 2 …` in a sentence or table names options that the command has."""
    unknown = []
    for code in re.findall(r"(?<!`)`eray ([^`\n]+)`(?!`)", page.read_text()):
        if code == "COMMAND --help":
            continue
        common, name, rest = re.fullmatch(r"((?:--[a-z-]+ ?)*)(\S*) ?(.*)", code, re.DOTALL).groups()
        unknown += [option for option in common.split() if option not in whole_parser()._option_string_actions]
        if common and name in ("", "COMMAND"):
            continue
        if name not in COMMANDS:
            unknown.append(code)
            continue
        options = {option for parser in parsers_below(parser_of(name)) for option in parser._option_string_actions}
        asked = re.findall(r"(?<![\w-])--?[a-z][a-z-]*", rest.partition("-- ")[0])
        unknown += [f"eray {name} {option}" for option in asked if option not in options]
    assert unknown == []


def test_command_page_has_every_command_and_option() -> None:
    """The table under each heading is this one; replace it where they differ."""
    page = DOCS / "cli.md"
    wanted = {parser.prog: rows for name in COMMANDS for parser, rows in sections(parser_of(name))}
    assert {prog: table_rows(page, f"## `{prog}`") for prog in wanted} == wanted
    assert set(re.findall(r"^## `(eray [a-z ]+)`$", page.read_text(), re.MULTILINE)) == set(wanted)


def test_readme_lists_every_command() -> None:
    readme = (ROOT / "README.md").read_text()
    assert [name for name in COMMANDS if not re.search(rf"^\| `eray {name}\b", readme, re.MULTILINE)] == []


def sections(parser: argparse.ArgumentParser) -> Iterator[tuple[argparse.ArgumentParser, list[str]]]:
    """Yield each command that takes options itself, with the rows of its table."""
    for below in parsers_below(parser):
        if not any(isinstance(action, argparse._SubParsersAction) for action in below._actions):
            yield below, [row for action in below._actions if (row := row_of(action))]


def parsers_below(parser: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    chosen = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    return [parser, *(below for action in chosen for below in action.choices.values())]


def row_of(action: argparse.Action) -> str | None:
    if action.help is argparse.SUPPRESS or action.dest == "help":
        return None
    value = f" {action.metavar}" if action.metavar and action.option_strings else ""
    names = [f"`{option}{value}`" for option in action.option_strings] or [f"`{action.metavar}`"]
    meaning = str(action.help).replace("|", "\\|")
    return f"| {', '.join(names)} | {meaning} |"
