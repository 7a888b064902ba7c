"""What launch() refuses before it looks for a cluster."""

import pytest

import eray
from eray.errors import UsageError


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"fn": "train"}, "fn='train': must be a function"),
        ({"args": "abc"}, "args='abc': must be a tuple or list, such as ('abc',)"),
        ({"args": 3}, "args=3: must be a tuple or list"),
        ({"kwargs": [1]}, r"kwargs=[1]: must be a dict"),
        ({"runtime_env": "x"}, "runtime_env='x': must be a dict"),
        ({"processes": 2, "processes_per_node": 2}, "processes=2 and processes_per_node=2: give one of them"),
        ({"processes": -1}, "processes=-1: must be a whole number, 1 or more"),
        ({"max_restarts": -1}, "max_restarts=-1: must be a whole number, 0 or more"),
        ({"min_nodes": 0}, "min_nodes=0: must be a whole number, 1 or more"),
        ({"timeout_s": 0}, "timeout_s=0: must be a number of seconds greater than 0"),
        ({"timeout_s": "1"}, "timeout_s='1': must be a number of seconds"),
        ({"world": ""}, "world='': must be a name"),
    ],
)
def test_bad_argument_is_named_with_its_value(arguments, words):
    with pytest.raises(UsageError) as caught:
        eray.launch(**{"fn": print} | arguments)
    assert str(caught.value).startswith(words)
