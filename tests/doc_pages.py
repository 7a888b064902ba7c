"""Read the documentation: its pages, their headings and links, and the code blocks with the marks on them.

A mark is a comment on the line before a block:

    <!-- file: NAME -->            the block is a file that later blocks of the page use
    <!-- run: laptop -->           the block is run on a laptop, by tests/local/test_docs_run.py
    <!-- run: laptop, full -->     likewise, among the slow tests
    <!-- run: laptop, stays -->    likewise; it runs until the page's last block has ended, and is then sent SIGTERM
    <!-- run: slurm -->            the block is a batch script, run by tests/slurm/test_launch_patterns.py

A ``text`` block after a block that is run has lines of its output, in any order; ``…`` stands for anything.
"""

import re
import unicodedata
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
BLOCK = re.compile(
    r"^(?:<!-- (?P<mark>[^\n]*) -->\n)?^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)
LINK = re.compile(r"\]\(([^)#\s:]*)(?:#([^)\s]*))?\)")


@dataclass(frozen=True)
class Block:
    """A code block; ``marks`` are the words of the comment before it, ``printed`` what it is said to print."""

    page: Path
    line: int
    language: str
    text: str
    kind: str = ""
    marks: tuple[str, ...] = ()
    printed: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def pages() -> list[Path]:
    """Return all pages of the documentation, and the README."""
    return sorted([ROOT / "README.md", *DOCS.rglob("*.md")])


def blocks(page: Path) -> list[Block]:
    """Return the code blocks of a page in their order."""
    text, found = page.read_text(), list[Block]()
    for match in BLOCK.finditer(text):
        kind, _, marks = (match["mark"] or "").partition(": ")
        line = text.count("\n", 0, match.start("language")) + 1
        printed: tuple[str, ...] = ()
        after = BLOCK.match(text, match.end() + 2) if kind == "run" else None
        if after and after["language"] == "text":
            printed = tuple(after["text"].splitlines())
        words = tuple(word.strip() for word in marks.split(",") if word.strip())
        found.append(Block(page, line, match["language"], match["text"], kind, words, printed))
    return found


@cache
def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as mkdocs makes them (Python-Markdown's slugify and unique)."""
    found = set[str]()
    for heading in re.findall(r"^#{1,6} (.+)$", BLOCK.sub("", page.read_text()), re.MULTILINE):
        text = re.sub(r"\[([^]]*)\]\([^)]*\)|[`*]", r"\1", heading)
        plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
        slug = anchor = re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())
        number = 0
        while anchor in found:
            number += 1
            anchor = f"{slug}_{number}"
        found.add(anchor)
    return found


def links(page: Path) -> list[tuple[str, str]]:
    """Return a page's links to files and headings of the repository: path, empty for the page itself, and anchor."""
    return LINK.findall(BLOCK.sub("", page.read_text()))


def table_rows(page: Path, heading: str) -> list[str]:
    """Return the rows of the first table under a heading, without the table's own two first lines."""
    text = page.read_text()
    section = text.partition(f"\n{heading}\n")[2]
    section = re.split(r"^#", section, maxsplit=1, flags=re.MULTILINE)[0]
    rows = list[str]()
    for line in section.splitlines():
        if line.startswith("|"):
            rows.append(line)
        elif rows:
            break
    return rows[2:]
