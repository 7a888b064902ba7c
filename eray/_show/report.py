"""Make the page of ``eray report`` from a Picture: one HTML file that loads nothing from anywhere."""

import base64
import hashlib
from collections.abc import Mapping
from datetime import UTC, tzinfo
from string import Template

from eray._core.picture import Picture
from eray._show import report_parts as parts
from eray._show.markup import Html, join, tag
from eray._show.node_rows import node_rows
from eray._show.report_data import data
from eray._show.report_grid import grid
from eray._show.starts import starts
from eray._show.troubles import troubles

FILES = ("report.html", "report.css", "report.js")
"""The files of this package that the page is made of."""


def render(picture: Picture, files: Mapping[str, str], zone: tzinfo = UTC) -> str:
    """Return the page. ``files`` are the texts of FILES by name; times are shown in ``zone``.

    The page allows no script but its own, by its hash, and no request at all (Content-Security-Policy).
    """
    rows, found = node_rows(picture), starts(picture)
    wrong = troubles(picture, rows)
    level, words = parts.standing(picture, wrong)
    options = [tag("option", start.label, value=at) for at, start in enumerate(found)]
    tables = [parts.start_table(picture, start) for start in found]
    return Template(files["report.html"]).substitute(
        title=tag("title", f"eray: {parts.title(picture)}, {words}"),
        script_hash=_hash(files["report.js"]),
        style_hash=_hash(files["report.css"]),
        style=files["report.css"],
        script=files["report.js"],
        name=join([parts.title(picture)]),
        standing=tag("span", words, class_=f"badge {level}"),
        summary=parts.summary(picture, rows, zone),
        problem_count=f"{len(wrong)}" if wrong else "none",
        problems=parts.problems(wrong),
        grid=grid(picture, rows),
        options=join(options),
        starts=join(tables) if tables else Html("<p>Nothing was recorded.</p>"),
        worlds=parts.worlds(picture, zone),
        environment=parts.pairs("Variables, without secrets", ("variable", "value"), picture.environment),
        versions=parts.pairs("Versions on the head", ("what", "version"), picture.versions),
        remarks=parts.remarks(picture, zone),
        data=data(picture, rows, found),
    )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
