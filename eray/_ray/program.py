"""What every process of a launched world runs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ray

from eray._ray.gang_actor import Body
from eray.errors import UsageError


@dataclass(frozen=True)
class Program:
    """What every process runs, and in what runtime environment. ``devices`` is what the user asked for each."""

    body: Body
    fn: Callable[..., Any]
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    runtime_env: Mapping[str, Any]
    devices: int | None

    def environment(self, generation: int | None) -> dict[str, Any]:
        """Return the runtime environment. One that no other program has: its worker processes are new ones."""
        own = {} if generation is None else {"ERAY_GENERATION": str(generation)}
        return {**self.runtime_env, "env_vars": {**self.runtime_env.get("env_vars", {}), **own}}

    def values(self) -> list[Any]:
        """Return references to ``fn`` and its arguments, so that each is stored once for all processes.

        Raises:
            UsageError: one of them cannot be pickled.
        """
        given = [self.fn, *self.args, *self.kwargs.values()]
        names = ["fn", *(f"args[{at}]" for at in range(len(self.args))), *(f"kwargs[{key!r}]" for key in self.kwargs)]
        return [_stored(name, value) for name, value in zip(names, given, strict=True)]


def _stored(name: str, value: Any) -> Any:
    if isinstance(value, ray.ObjectRef):
        return value
    try:
        return ray.put(value)
    except TypeError as exc:  # what Ray makes of whatever a foreign __reduce__ raises
        raise UsageError(f"{name} of type {type(value).__name__} cannot be sent to the processes: {exc}") from exc
