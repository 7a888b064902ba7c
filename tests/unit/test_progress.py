"""The live line of a start: rewritten on a terminal, said again in a log only where there is something to say."""

import pytest

from eray._show.progress import CLEAR, Progress

TWO = ["node02", "node03"]
WORDS = "processes 0 and 1 (n1)"
THOUSAND = [f"node{rank:04}" for rank in range(1, 1001)]


@pytest.mark.parametrize(
    ("told", "said"),
    [
        # (seconds, phase, ready, expected, missing), the log's line, "" for none
        (
            [(0, "nodes report", 1, 3, TWO), (1, "nodes report", 1, 3, TWO)],
            ["eray: nodes report: 1 of 3, missing node[02-03]\n", ""],
        ),
        (
            [
                (5, "nodes report", 2, 3, TWO[1:]),
                (34, "nodes report", 2, 3, TWO[1:]),
                (35, "nodes report", 2, 3, TWO[1:]),
            ],
            [
                "eray: nodes report: 2 of 3, missing node03\n",
                "",
                "eray: nodes report: 2 of 3, missing node03, 30 s\n",
            ],
        ),
        (  # what changes at once is said a moment later, with what changed meanwhile
            [
                (0, "a", 1, 9, []),
                (0.1, "a", 2, 9, []),
                (0.2, "a", 3, 9, []),
                (2.0, "a", 3, 9, []),
                (3.9, "a", 4, 9, []),
            ],
            ["eray: a: 1 of 9\n", "", "", "eray: a: 3 of 9, 2 s\n", ""],
        ),
        (  # complete, and the next phase: at once, with its own time
            [(0, "a", 1, 2, ["n1"]), (0.5, "a", 2, 2, []), (0.6, "b", 0, 2, [WORDS])],
            ["eray: a: 1 of 2, missing n1\n", "eray: a: 2 of 2\n", f"eray: b: 0 of 2, missing {WORDS}\n"],
        ),
        ([(0, "a", 0, 1000, THOUSAND)], ["eray: a: 0 of 1,000, missing node[0001-1000]\n"]),
    ],
)
def test_log_gets_a_line_where_something_changed_or_30_s_passed(told, said):
    progress = Progress(terminal=False)
    assert [progress.tell(*row, now=now) for now, *row in told] == said
    assert progress.done() == ""


def test_log_is_silent_at_first_and_then_counts_from_the_beginning():
    progress = Progress(terminal=False, silent_until=10.0)
    said = [progress.tell("a", 1, 3, TWO, now=now) for now in (0.0, 9.9, 10.0, 11.0)]
    assert said == ["", "", "eray: a: 1 of 3, missing node[02-03], 10 s\n", ""]


def test_terminal_rewrites_one_line_and_writes_nothing_that_stands_there():
    progress = Progress(terminal=True)
    assert progress.tell("nodes report", 1, 3, TWO, now=0) == f"{CLEAR}eray: nodes report: 1 of 3, missing node[02-03]"
    assert progress.tell("nodes report", 1, 3, TWO, now=0.9) == ""
    assert progress.tell("nodes report", 1, 3, TWO, now=70) == (
        f"{CLEAR}eray: nodes report: 1 of 3, missing node[02-03], 1 min 10 s"
    )
    assert [progress.done(), progress.done()] == [CLEAR, ""]
    assert progress.tell("nodes report", 1, 3, TWO, now=70).startswith(CLEAR), "what was cleared is written anew"


@pytest.mark.parametrize(
    ("width", "missing", "line"),
    [
        (80, THOUSAND[::2], "eray: report: 5 of 9, missing node[0001,0003,0005] and 497 more"),
        (50, THOUSAND[::2], "eray: report: 5 of 9"),
        (40, TWO, "eray: report: 5 of 9"),
        (60, [WORDS], f"eray: report: 5 of 9, missing {WORDS}"),
        (50, [WORDS], "eray: report: 5 of 9"),
        (20, TWO, "report: 5 of 9"),
        (8, TWO, "5 of 9"),
        (1, TWO, "5"),
    ],
)
def test_terminals_line_never_reaches_the_last_column(width, missing, line):
    assert Progress(terminal=True).tell("report", 5, 9, missing, now=0, width=width) == CLEAR + line
    assert len(line) < max(width, 2)


def test_names_bring_no_control_characters_into_the_line():
    said = Progress(terminal=False).tell("start\n\x1b[31m", 0, 1, ["b\x1bad\n"], now=0)
    assert "\x1b" not in said
    assert said.count("\n") == 1


@pytest.mark.parametrize("width", [40, 41, 59, 80, 120, 200])
@pytest.mark.parametrize("missing", [THOUSAND, THOUSAND[::2], TWO, [WORDS], ()], ids=len)
def test_terminals_line_is_whole_at_each_width(width, missing):
    progress = Progress(terminal=True)
    progress.tell("processes start JAX", 1, 1000, missing, now=0, width=width)
    line = progress.tell("processes start JAX", 999, 1000, missing, now=3_000, width=width).removeprefix(CLEAR)
    assert len(line) < width
    assert line.endswith(("999 of 1,000", "50 min"))
