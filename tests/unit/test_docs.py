"""The pages that list things list all of them, as they are."""

import re
from pathlib import Path

import pytest
from error_examples import EXAMPLES, public_classes

from eray import errors
from eray._settings import settings_table

ROOT = Path(__file__).resolve().parents[2]
ERRORS = (ROOT / "docs/errors.md").read_text()
ENVIRONMENT = (ROOT / "docs/environment.md").read_text()
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("tests/**/README.md")])


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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_page_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_readme_opens_with_two_commands() -> None:
    """All that a fresh machine needs stands in the first block: one command makes and runs, one tests."""
    block = re.search(r"```bash\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert block is not None
    commands = block[1].replace("\\\n", " ").splitlines()
    assert len(commands) == 2
    assert "eray run -n 4 -- python examples/hello_jax.py" in commands[0]
    assert commands[1].split()[0] == ".venv/bin/pytest"
