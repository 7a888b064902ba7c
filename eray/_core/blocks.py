"""A tuple in blocks: to replace one of ten thousand entries copies a block, not all of them."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, TypeVar, get_args, overload

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

T = TypeVar("T")
SIZE = 128


class Blocks(Sequence[T]):
    """An immutable sequence. In pydantic's models it is validated and written as a tuple of its entries is.

    >>> few = Blocks(["a", "b"])
    >>> few.replaced(1, "c"), few, len(few), few[-1]
    (Blocks('a', 'c'), Blocks('a', 'b'), 2, 'b')
    """

    __slots__ = ("_blocks", "_length")

    def __init__(self, entries: Iterable[T] = ()) -> None:
        whole = tuple(entries)
        self._length = len(whole)
        self._blocks = tuple(whole[begin : begin + SIZE] for begin in range(0, len(whole), SIZE))

    def replaced(self, index: int, entry: T) -> "Blocks[T]":
        """Return the same with another entry at ``index``, which is from 0 to below the length."""
        which, at = divmod(index, SIZE)
        block, same = self._blocks[which], Blocks[T].__new__(Blocks)
        same._length = self._length
        changed = (*block[:at], entry, *block[at + 1 :])
        same._blocks = (*self._blocks[:which], changed, *self._blocks[which + 1 :])
        return same

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[T, ...]: ...
    def __getitem__(self, index: int | slice) -> T | tuple[T, ...]:
        """Return an entry, or those of a slice as a tuple."""
        if isinstance(index, slice):
            return tuple(self)[index]
        if not -self._length <= index < self._length:
            raise IndexError(f"{index} of {self._length} entries")
        which, at = divmod(index % self._length, SIZE)
        return self._blocks[which][at]

    def __iter__(self) -> Iterator[T]:
        return chain.from_iterable(self._blocks)

    def __len__(self) -> int:
        return self._length

    def __eq__(self, other: object) -> bool:
        return self._blocks == other._blocks if isinstance(other, Blocks) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._blocks)

    def __repr__(self) -> str:
        return f"Blocks({', '.join(map(repr, self))})"

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Tell pydantic to treat it as a tuple; see its page on custom types."""
        (entry,) = get_args(source) or (Any,)
        entries = handler.generate_schema(tuple[entry, ...])  # type: ignore[valid-type]
        return core_schema.no_info_wrap_validator_function(
            lambda value, read: value if isinstance(value, cls) else cls(read(value)),
            entries,
            serialization=core_schema.plain_serializer_function_ser_schema(tuple, return_schema=entries),
        )
