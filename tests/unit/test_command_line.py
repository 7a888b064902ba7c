"""The command line itself: what wrong usage is told, the version, and completion in a real bash."""

import platform
import re
import subprocess
import sys
from importlib.metadata import version

import pytest

import eray
from eray._cli.main import COMMANDS, main

SLURM = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n[1-2]", "SLURM_JOB_NUM_NODES": "2"}
RESTARTS = ["--max-restarts", "1", "--", "true"]


@pytest.mark.parametrize(
    ("words", "command", "cause"),
    [
        (["run", "--bogus"], "run", "unrecognized arguments: --bogus"),
        (["run", "-n", "0"], "run", "argument -n/--processes: '0' must be a whole number, 1 or more"),
        (["run", "--max-restarts", "-1"], "run", "argument --max-restarts: '-1' must be a whole number, 0 or more"),
        (["up", "now"], "up", "unrecognized arguments: now"),
        (["jobs", "list", "--bogus"], "jobs list", "unrecognized arguments: --bogus"),
        (["run", "--max-restart", "2"], "run", "unrecognized arguments: --max-restart; did you mean --max-restarts?"),
        (["run", "--nproc", "4"], "run", "unrecognized arguments: --nproc; did you mean --processes?"),
        (
            ["run", "--nproc_per_node=4"],
            "run",
            "unrecognized arguments: --nproc_per_node=4; did you mean --processes-per-node?",
        ),
        (["run", "--dryrun"], "run", "unrecognized arguments: --dryrun; did you mean --dry-run?"),
        (["jobs", "list", "--js"], "jobs list", "unrecognized arguments: --js; did you mean --json?"),
        (["jobs"], "jobs", "the following arguments are required: list|stop"),
    ],
    ids=str,
)
def test_wrong_option_is_told_after_its_commands_own_usage(words, command, cause, capsys):
    assert main(words) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"usage: eray {command} [-h]")
    assert captured.err.splitlines()[-1] == f"eray {command}: error: {cause}"


def test_usage_shows_where_the_program_stands(capsys):
    assert main(["run", "--help"]) == 0
    usage = capsys.readouterr().out.split("\n\n")[0]
    assert usage.endswith("-- CMD …")


def test_eray_alone_prints_its_commands_and_what_is_missing(capsys):
    assert main([]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert [name for name in COMMANDS if not re.search(rf"^    {name}\b", captured.err, re.M)] == []
    assert captured.err.splitlines()[-1] == "eray: error: the following arguments are required: COMMAND"


@pytest.mark.parametrize(
    ("words", "example"),
    [
        (["run"], "eray run -n 4 -- python train.py"),
        (["run", "--"], "eray run -n 4 -- python train.py"),
        (["submit", "--"], "eray submit -- python driver.py"),
    ],
    ids=" ".join,
)
def test_missing_program_is_told_with_an_example(words, example, capsys):
    assert main(words) == 2
    assert capsys.readouterr().err == f"eray: no program; write it after `--`, such as `{example}`\n"


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({}, "there is only 1 node; give 1, or start this in a Slurm allocation of several"),
        (SLURM, "there are only 2 nodes; give 2 at most, or ask Slurm for more (--nodes)"),
    ],
    ids=["one machine", "an allocation"],
)
def test_min_nodes_beyond_those_that_are_there(environ, words, monkeypatch, capsys):
    for name in SLURM:
        monkeypatch.delenv(name, raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert main(["run", "--min-nodes", "5", *RESTARTS]) == 2
    assert capsys.readouterr().err == f"eray: --min-nodes 5: {words}\n"


@pytest.mark.parametrize(("command", "told"), [("plan", 1), ("completion bash", 1), ("run --led", 0)])
def test_misspelled_variable_is_told_once_on_stderr(command, told, monkeypatch, capsys):
    monkeypatch.setenv("ERAY_PORTRANGE", "30000-30100")
    main(command.split())
    assert capsys.readouterr().err.count("did you mean ERAY_PORT_RANGE?") == told


def test_version_is_told_and_nothing_heavy_loaded():
    program = (
        "import sys; from eray._cli.main import main; code = main(['--version']); "
        "sys.exit(str(heavy) if (heavy := {'ray', 'jax', 'numpy', 'pydantic', 'asyncio'} & set(sys.modules)) else code)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    versions = f"Ray {version('ray')}, JAX {version('jax')}, Python {platform.python_version()}"
    assert done.stdout == f"eray {eray.__version__}, {versions}\n"


OFFERED = {
    "eray ru": ["run"],
    "eray run --pro": ["--processes", "--processes-per-node"],
    "eray jobs st": ["stop"],
    "eray completion ": ["bash", "zsh", "fish"],
    "eray --v": ["--version"],
}


def question(line: str) -> str:
    """Return what asks bash for its offer at the end of ``line``, by the function that the script registers."""
    words = line.split(" ")
    return f"""
COMP_WORDS=({" ".join(f"'{word}'" for word in words)}) COMP_CWORD={len(words) - 1} COMP_LINE='{line}'
COMP_POINT={len(line)} COMPREPLY=()
"$function" eray '{words[-1]}' '{words[-2]}'
echo "${{COMPREPLY[@]}}"
"""


@pytest.fixture(scope="module")
def offered() -> dict[str, list[str]]:
    """What bash offers at the end of each line."""
    command = [sys.executable, "-m", "eray", "completion", "bash"]
    made = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert (made.returncode, made.stderr) == (0, "")
    ask = [made.stdout, "function=$(complete -p eray | sed 's/.*-F \\([^ ]*\\).*/\\1/')", *map(question, OFFERED)]
    command = ["bash", "--norc", "--noprofile", "-c", "\n".join(ask)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    assert done.stderr == ""
    return {line: words.split() for line, words in zip(OFFERED, done.stdout.splitlines(), strict=True)}


@pytest.mark.parametrize("line", OFFERED)
def test_bash_completes(line, offered):
    assert offered[line] == OFFERED[line]


@pytest.mark.parametrize(("shell", "word"), [("zsh", "#compdef eray"), ("fish", "complete -c eray")])
def test_script_for_another_shell_knows_all_commands(shell, word, capsys):
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert word in script
    assert [name for name in COMMANDS if name not in script] == []


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["statsu"], "'statsu' is no command; did you mean status?"),
        (["--log-json", "timline"], "'timline' is no command; did you mean timeline?"),
        (["bogus"], f"'bogus' is no command; the commands are {', '.join(COMMANDS)}"),
    ],
)
def test_command_that_is_none_is_told_with_what_is_meant(words, told, capsys):
    assert main(words) == 2
    assert told in capsys.readouterr().err
