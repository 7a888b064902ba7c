"""What mkdocs is told beside mkdocs.yml: pages made of files outside docs, and links between them.

A link in a page is written for a reader of the repository (``../examples/train.py``). On the site it leads to the page
that shows that file.
"""

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r"(\]\()([^)\s#:]+)(#[^)\s]*)?(\))")
PAGES = {
    "CHANGELOG.md": "changes.md",
    "CONTRIBUTING.md": "contributing.md",
    "README.md": "index.md",
    "tests/slurm/README.md": "tests/slurm.md",
    **{
        path.relative_to(ROOT).as_posix(): f"examples/{path.name.removesuffix('.py').replace('.', '_')}.md"
        for path in sorted(ROOT.glob("examples/*.*"))
    },
}
"""Where on the site a file of the repository is shown."""


def on_files(files: "Files", config: "MkDocsConfig") -> "Files":
    """Add the pages of files outside docs; in place of the README the site has docs/index.md."""
    from mkdocs.structure.files import File

    for source, target in PAGES.items():
        if target == "index.md":
            continue
        text = (ROOT / source).read_text()
        if not source.endswith(".md"):
            language = "python" if source.endswith(".py") else "bash"
            text = f"# {source.removeprefix('examples/')}\n\n```{language}\n{text}```\n"
        files.append(File.generated(config, target, content=_on_site(text, source, target)))
    return files


def on_page_markdown(markdown: str, page: "Page", config: "MkDocsConfig", files: "Files") -> str:
    """Turn links out of docs into links to the page that shows the file."""
    del config, files
    if page.file.generated_by:
        return markdown
    return _on_site(markdown, f"docs/{page.file.src_uri}", page.file.src_uri)


def _on_site(markdown: str, source: str, target: str) -> str:
    """Return the text of ``source``, a file of the repository, with links as they are from ``target`` on the site."""

    def replaced(match: re.Match[str]) -> str:
        path = os.path.normpath(os.path.join(os.path.dirname(source), match[2]))
        page = PAGES.get(path) or path.removeprefix("docs/")
        leads = os.path.relpath(page, os.path.dirname(target) or ".")
        return f"{match[1]}{leads}{match[3] or ''}{match[4]}"

    return LINK.sub(replaced, markdown)
