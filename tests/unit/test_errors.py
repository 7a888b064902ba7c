"""Every error survives pickle, has and an exit code of its family."""

import pickle

import pytest
from error_examples import EXAMPLES, public_classes

from eray import errors

FAMILIES = {errors.ErayError, errors.ConfigurationError, errors.ClusterError, errors.JoinError}


def test_every_class_has_an_example() -> None:
    assert public_classes() - FAMILIES == {type(example) for example in EXAMPLES}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: type(example).__name__)
def test_error_survives_pickle(example: errors.ErayError) -> None:
    back = pickle.loads(pickle.dumps(example))
    assert type(back) is type(example)
    assert (back.args, str(back), vars(back)) == (example.args, str(example), vars(example))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: type(example).__name__)
def test_error_exit_code_is_between_2_and_5(example: errors.ErayError) -> None:
    assert example.exit_code in (2, 3, 4, 5)


@pytest.mark.parametrize(("expected", "words"), [(1, "(of 1 node)"), (3, "(of 3 nodes)")])
def test_nodes_are_counted_in_words(expected: int, words: str) -> None:
    assert words in str(errors.NodesMissingError("node02", expected, 300.0, "report to the head"))
