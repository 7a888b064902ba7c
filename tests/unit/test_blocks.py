import pickle

import pytest
from pydantic import BaseModel, ValidationError

from eray._core.blocks import SIZE, Blocks


class Held(BaseModel):
    entries: Blocks[int | None]


@pytest.mark.parametrize("length", [1, SIZE - 1, SIZE, SIZE + 1, 3 * SIZE + 5])
def test_one_entry_is_replaced_and_the_first_sequence_stays(length: int) -> None:
    before = Blocks(range(length))
    for index in {0, length // 2, length - 1}:
        after = before.replaced(index, -1)
        expected = [*range(index), -1, *range(index + 1, length)]
        assert list(after) == expected
        assert [after[at] for at in range(length)] == expected
        assert (len(after), after[-1], after[1:3]) == (length, expected[-1], tuple(expected[1:3]))
        assert after == Blocks(expected) != before
        assert hash(after) == hash(Blocks(expected))
    assert list(before) == list(range(length))


@pytest.mark.parametrize("index", [3, -4])
def test_entry_that_is_not_there_is_an_error(index: int) -> None:
    with pytest.raises(IndexError):
        Blocks([1, 2, 3])[index]


def test_models_hold_it_as_a_tuple() -> None:
    held = Held(entries=(1, None, 3))
    assert held.entries == Blocks([1, None, 3])
    assert held.model_dump() == {"entries": (1, None, 3)}
    assert held.model_dump_json() == '{"entries":[1,null,3]}'
    assert Held.model_validate_json(held.model_dump_json()) == held == Held(entries=held.entries)
    assert pickle.loads(pickle.dumps(held)) == held
    with pytest.raises(ValidationError, match=r"entries\.1"):
        Held(entries=(1, "two"))
