"""One process's place in a world, as the coordinator decided it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, NoReturn, Protocol, Self, TypeVar, overload

T = TypeVar("T")


@dataclass(frozen=True)
class Membership:
    """The facts of a connection, as the coordinator decided them."""

    world: str
    generation: int
    process_index: int
    process_count: int
    local_device_ids: tuple[int, ...] | None
    device_rule: str | None
    coordinator_address: str | None
    node: dict[str, Any]
    stays_until_all_left: bool
    drain_timeout_s: float
    alone: bool

    @property
    def place(self) -> tuple[str, int, int]:
        """World, generation and process_index, as the coordinator is asked with them."""
        return self.world, self.generation, self.process_index

    @property
    def ids(self) -> dict[str, Any]:
        """What lines of the log call it by."""
        ids = dict(zip(("world", "generation", "process_index"), self.place, strict=True))
        return {**ids, "node": str(self.node.get("name"))}

    @property
    def name(self) -> str:
        """The process as messages name it."""
        return f"process {self.process_index} on {self.node.get('name')}"

    @property
    def words(self) -> str:
        """The process and its world."""
        return (
            f"process {self.process_index} of {self.process_count} in world {self.world!r} "
            f"generation {self.generation} on {self.node.get('name')}"
        )


class _Member(Protocol):
    _about: Membership


class Fact(Generic[T]):
    """Reads one fact of a member's ``_about``, with its type; nobody can set it."""

    def __init__(self, read: Callable[[Membership], T]) -> None:
        self._read = read

    @overload
    def __get__(self, member: None, owner: type) -> Self: ...

    @overload
    def __get__(self, member: _Member, owner: type) -> T: ...

    def __get__(self, member: _Member | None, owner: type) -> Self | T:
        return self if member is None else self._read(member._about)

    def __set__(self, member: _Member, value: object) -> NoReturn:
        raise AttributeError("this is decided by the coordinator and cannot be set")
