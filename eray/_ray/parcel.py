"""What a process of a launched world returns, pickled before it leaves its world, so that a failure to do so counts."""

import pickle
from dataclasses import dataclass
from typing import Any, Self

from ray import cloudpickle

from eray.errors import ResultError


@dataclass(frozen=True)
class Parcel:
    """One pickled value; Ray moves its large buffers without a copy."""

    data: bytes
    buffers: list[pickle.PickleBuffer]

    @classmethod
    def of(cls, value: Any, process_index: int) -> Self:
        """Pickle a value.

        Raises:
            ResultError: it cannot be pickled, as a global array of JAX's, or an open file.
        """
        buffers: list[pickle.PickleBuffer] = []
        dumps: Any = cloudpickle.dumps
        try:
            data = dumps(value, protocol=5, buffer_callback=buffers.append)
        except Exception as exc:  # whatever a foreign __reduce__ raises
            raise ResultError(process_index, type(value).__name__, f"{type(exc).__name__}: {exc}") from exc
        return cls(data, buffers)

    def open(self, process_index: int) -> Any:
        """Return the value.

        Raises:
            ResultError: it cannot be made again in this process.
        """
        try:
            return pickle.loads(self.data, buffers=self.buffers)
        except Exception as exc:
            found = f"this process cannot read it ({type(exc).__name__}: {exc})"
            raise ResultError(process_index, "what it returned", found) from exc
