"""The documentation's commands, run as they stand, on a laptop; what they are said to print is printed."""

import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import Running
from doc_pages import Block, blocks, pages
from laptop import EXAMPLES, Laptop, await_text

pytestmark = [pytest.mark.ray, pytest.mark.jax]
RUNS = {page: [block for block in blocks(page) if block.kind == "run" and "laptop" in block.marks] for page in pages()}
FULL = "full"


def parts() -> Iterator[object]:
    """Yield the blocks of a page that run in one directory: the quick ones, and the slow ones."""
    for page, runs in RUNS.items():
        for slow in (False, True):
            chosen = [block for block in runs if (FULL in block.marks) == slow]
            if chosen:
                yield pytest.param(chosen, id=f"{page.stem}{'-full' * slow}", marks=[pytest.mark.full] * slow)


def start(laptop: Laptop, block: Block) -> Running:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return laptop.start(["bash", "-euc", block.text], PATH=path, PYTHONUNBUFFERED="1")


def require_printed(output: str, lines: tuple[str, ...]) -> None:
    """Fail unless each line was printed; an ellipsis in it is anything."""
    printed = output.splitlines()
    patterns = {line: re.compile(".*".join(map(re.escape, line.split("…")))) for line in lines}
    assert [line for line, pattern in patterns.items() if not any(map(pattern.fullmatch, printed))] == [], output


@pytest.mark.parametrize("runs", list(parts()))
def test_commands_of_a_page(laptop: Laptop, runs: list[Block]) -> None:
    work = laptop.root / "work"
    shutil.copytree(EXAMPLES, work / "examples")
    for block in blocks(runs[0].page):
        if block.kind == "file":
            (work / block.marks[0]).write_text(block.text)
    staying = []
    for block in runs:
        running = start(laptop, block)
        if "stays" in block.marks:
            await_text(running, block.printed[0].partition("…")[0])
            staying.append(running)
        else:
            require_printed(running.wait(90).check().output, block.printed)
    for running in staying:
        running.signal(15)
        assert running.wait(15).returncode == 143, running.output
    for entry in work.iterdir():
        if entry.is_dir():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def test_pages_for_newcomers_are_run() -> None:
    assert {"quickstart-laptop", "elastic", "ray-train"} <= {page.stem for page, runs in RUNS.items() if runs}
