"""Lines that srun passes on whole."""

import json

import pytest

from eray._core.short_lines import LINE_BYTES, short_json, short_line

ROOM = LINE_BYTES - 1
WHOLE = {"node": "n1", "name": "names", "status": "ok", "found": "all resolve", "remedy": None}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("x" * ROOM, "x" * ROOM),
        ("x" * LINE_BYTES, "x" * (ROOM - 3) + "…"),
        ("é" * 600, "é" * 510 + "…"),
    ],
    ids=["empty", "fits", "too long", "no half of a character"],
)
def test_line_is_cut_where_it_is_too_long(text, expected):
    assert short_line(text) == expected
    assert len(expected.encode()) <= ROOM


@pytest.mark.parametrize(
    "changed",
    [
        {"found": "x" * 5000},
        {"found": "é\n" * 2000},
        {"found": "x" * 900, "remedy": "y" * 900},
        {"found": "x" * 950},
    ],
    ids=["found", "escapes", "both", "a little"],
)
def test_record_stays_json_with_its_keys_and_loses_only_ends(changed):
    text = short_json(WHOLE | changed)
    assert len(text.encode()) <= ROOM
    found = json.loads(text)
    assert list(found) == list(WHOLE)
    for name, whole in (WHOLE | changed).items():
        assert found[name] == whole or (name in changed and whole.startswith(found[name].removesuffix("…")))
    assert len(text.encode()) > LINE_BYTES / 3, "no more is lost than must be"


def test_record_that_fits_is_whole():
    assert json.loads(short_json(WHOLE)) == WHOLE
