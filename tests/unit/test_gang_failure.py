import pytest
from ray import exceptions

from eray._ray.gang_failure import end_words

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
