import pytest
from ray import exceptions

from eray._ray.gang_failure import NAMED, GangFailure, annotate, end_words
from eray.errors import WorldFailedError

TRACE = 'Traceback (most recent call last):\n  File "train.py", line 3, in fn\n    raise Mine(1, 2)\ntrain.Mine: 1-2\n'


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (
            exceptions.UnserializableException(TRACE),
            "raised an exception that cannot be unpickled: train.Mine: 1-2; its",
        ),
        (exceptions.OutOfMemoryError("x"), "was killed by Ray: its node ran out of memory"),
        (exceptions.NodeDiedError("x"), "is lost with its node"),
        (ValueError("no such layer"), "failed: ValueError: no such layer"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_end_words_say_what_happened(error, words):
    assert end_words(error).startswith(words)


FIRST = "process 1 on n1 (pid 7)"
WHO_FAILED = f"eray: world 'w' (generation 2) failed: {FIRST} raised KeyError: 'layer'"
OTHERS = {f"process {index} on n1 (pid {index})": "raised ValueError: two\nlines" for index in range(2, NAMED + 4)}


@pytest.mark.parametrize(
    ("error", "tail", "others", "notes"),
    [
        (KeyError("layer"), (), {}, [WHO_FAILED]),
        (WorldFailedError("w", 2, "it says who failed itself"), (), {}, []),
        (KeyError("layer"), ("one", "two"), {}, [WHO_FAILED, "eray: its last lines on stderr:\n    one\n    two"]),
        (
            KeyError("layer"),
            (),
            dict(list(OTHERS.items())[:2]),
            [
                WHO_FAILED,
                "eray: also failed:\n"
                "    process 2 on n1 (pid 2) raised ValueError: two\n"
                "    process 3 on n1 (pid 3) raised ValueError: two",
            ],
        ),
    ],
    ids=["who", "who it says itself", "last lines", "others"],
)
def test_notes_name_who_failed_first_its_last_lines_and_the_others(error, tail, others, notes):
    failure = GangFailure(f"{FIRST} raised KeyError: 'layer'\nmore", 5, error, 1)
    annotate(failure, "w", 2, tail, others)
    assert getattr(failure.error, "__notes__", []) == notes


def test_others_that_failed_are_counted_where_they_are_many():
    failure = GangFailure(f"{FIRST} raised KeyError: 'layer'", 5, KeyError("layer"), 1)
    annotate(failure, "w", 2, (), OTHERS)
    lines = failure.error.__notes__[-1].splitlines()
    assert (len(lines), lines[-1]) == (NAMED + 2, "    and 2 more")
