"""Make HTML from values: all text goes through ``text``, and nothing else escapes."""

from collections.abc import Iterable, Sequence
from html import escape

from eray._show.wording import clean

EMPTY = frozenset({"input"})
"""Elements that have no end."""


class Html(str):
    """Markup that needs no escaping any more."""


def text(value: object) -> Html:
    """Return a value as HTML; only Html stays as it is."""
    return value if isinstance(value, Html) else Html(escape(clean(str(value))))


def tag(name: str, /, *content: object, **attributes: object) -> Html:
    """Return an element. ``class_`` is ``class``, ``_`` in names is ``-``; None and False leave an attribute out."""
    written = "".join(
        f" {key.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{text(str(value))}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    return Html(f"<{name}{written}>" + ("" if name in EMPTY else f"{join(content)}</{name}>"))


def join(parts: Iterable[object], between: str = "") -> Html:
    """Return the parts one after another, each escaped unless it is Html."""
    return Html(between.join(text(part) for part in parts))


def with_code(words: str) -> Html:
    """Return a sentence in which what stands between backticks is code."""
    parts = words.split("`")
    return join(tag("code", part) if at % 2 else part for at, part in enumerate(parts))


def table(caption: str, columns: Sequence[str], rows: Iterable[Sequence[object]], class_: str | None = None) -> Html:
    """Return a table whose first column names the row, in a box that may scroll where it is too wide."""
    head = tag("tr", *(tag("th", column, scope="col") for column in columns))
    body = [tag("tr", tag("th", first, scope="row"), *(tag("td", cell) for cell in rest)) for first, *rest in rows]
    made = tag("table", tag("caption", caption), tag("thead", head), tag("tbody", *body), class_=class_)
    return tag("div", made, class_="wide")


def facts(rows: Iterable[tuple[str, object]]) -> Html:
    """Return names with their values as a description list."""
    return tag("dl", *(tag("div", tag("dt", name), tag("dd", value)) for name, value in rows), class_="facts")
