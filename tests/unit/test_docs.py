"""The pages that list things list all of them, as they are; what they say can be followed."""

import ast
import re
from functools import cache
from pathlib import Path
from runpy import run_path
from typing import Any

import pytest
import yaml
from doc_pages import DOCS, ROOT, Block, anchors, blocks, links
from error_examples import EXAMPLES, public_classes

from eray import errors
from eray._settings import settings_table

ERRORS = (DOCS / "errors.md").read_text()
ENVIRONMENT = (DOCS / "environment.md").read_text()
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *ROOT.glob("tests/**/README.md")])
BLOCKS = [block for page in PAGES for block in blocks(page)]
SITE = run_path(str(DOCS / "hooks.py"))["PAGES"]


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def test_errors_page_has_every_class() -> None:
    assert [cls.__name__ for cls in public_classes() if not re.search(rf"\b{cls.__name__}\b", ERRORS)] == []


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: type(example).__name__)
def test_errors_page_shows_the_message_under_its_class(example: errors.ErayError) -> None:
    assert f"### {type(example).__name__}\n\n    {example}\n\n" in ERRORS


def test_environment_page_has_every_variable_with_its_meaning() -> None:
    rows = {line.split("`")[1]: line for line in ENVIRONMENT.splitlines() if line.startswith("| `ERAY_")}
    settings = {setting.variable: setting for _, setting in settings_table()}
    assert [name for name, setting in settings.items() if f" {setting.meaning} |" not in rows.get(name, "")] == []
    assert [name for name in rows if name not in settings and not name.startswith("ERAY_TEST_")] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_page_links_lead_somewhere(page: Path) -> None:
    """To a file that is there and, in a page, to a heading that is there."""
    lost = []
    for path, anchor in links(page):
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            lost.append(f"{path}#{anchor}" if anchor else path)
    assert lost == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_page_names_only_variables_that_exist(page: Path) -> None:
    known = {setting.variable for _, setting in settings_table()} | variables_of_tests()
    assert set(re.findall(r"\bERAY_[A-Z_]*[A-Z]\b", page.read_text())) <= known


@cache
def variables_of_tests() -> set[str]:
    sources = (path.read_text() for path in (*ROOT.glob("tests/*.py"), *ROOT.glob("tests/*/*.py")))
    return {name for source in sources for name in re.findall(r"\bERAY_TEST_[A-Z_]*[A-Z]\b", source)}


def test_every_page_is_in_the_navigation() -> None:
    """What is missing is a page that nobody finds; what is too much does not exist. Both stand in mkdocs.yml."""
    there = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")} | set(SITE.values())
    in_navigation = _leaves(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"])
    assert sorted(there - set(in_navigation)) == []
    assert sorted(set(in_navigation) - there) == []
    assert len(in_navigation) == len(set(in_navigation))


def _leaves(nav: Any) -> list[str]:
    if isinstance(nav, str):
        return [nav]
    return [leaf for each in (nav.values() if isinstance(nav, dict) else nav) for leaf in _leaves(each)]


@pytest.mark.parametrize("block", [each for each in BLOCKS if each.language == "python"], ids=lambda each: each.place)
def test_python_block_compiles(block: Block) -> None:
    assert ast.parse(block.text, block.place).body


def test_marks_are_known() -> None:
    """A mark that is misspelt would leave its block unrun."""
    marks = {"": set[str](), "run": {"laptop", "slurm", "full", "stays"}}
    assert [each.place for each in BLOCKS if each.kind != "file" and not set(each.marks) <= marks[each.kind]] == []
    assert [each.place for each in BLOCKS if each.kind == "file" and len(each.marks) != 1] == []
    assert [each.place for each in BLOCKS if "stays" in each.marks and not each.printed] == []


def test_readme_opens_with_two_commands() -> None:
    """All that a fresh machine needs stands in the first block: one command makes and runs, one tests."""
    block = re.search(r"```bash\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert block is not None
    commands = block[1].replace("\\\n", " ").splitlines()
    assert len(commands) == 2
    assert "eray run -n 4 -- python examples/hello_jax.py" in commands[0]
    assert commands[1].split()[0] == ".venv/bin/pytest"
