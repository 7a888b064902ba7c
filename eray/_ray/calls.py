"""Calls the coordinator through Ray, from a process that is attached to it. Ray's errors end here."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import ray
import ray.exceptions

from eray._core.naming import COORDINATOR_NAME, NAMESPACE
from eray._ray.asking import Answer, NoAnswer, Unreachable
from eray.errors import ClusterLostError

TAKE_BACK_S = 0.2


def find_coordinator(*, namespace: str = NAMESPACE, name: str = COORDINATOR_NAME) -> Any | None:
    """Return the handle of the coordinator of the Ray cluster that this process is attached to, or None."""
    require_ray()
    try:
        return ray.get_actor(name, namespace=namespace)
    except ValueError:  # what Ray raises for a name that is not there (FACTS R12)
        return None


def ray_call(handle: Any, method: str, args: Sequence[Any], timeout_s: float) -> Answer:
    """Call a method of the actor and return its answer, as ``asking.Call`` says."""
    require_ray()
    with rays_errors():
        answer: Answer = ray.get(getattr(handle, method).remote(*args), timeout=timeout_s)
        return answer


@contextmanager
def rays_errors() -> Iterator[None]:
    """Tell apart an actor that may answer later and one that is gone."""
    try:
        yield
    except (ray.exceptions.ActorUnavailableError, ray.exceptions.GetTimeoutError) as exc:
        raise NoAnswer(str(exc)) from exc
    except ray.exceptions.RayError as exc:
        raise Unreachable(type(exc).__name__) from exc


def take_back(call: Any) -> None:
    """Cancel a call of the actor that is out: while one is, leaving Ray takes 0.25 s more (measured, Ray 2.60)."""
    if ray.is_initialized():
        with suppress(ray.exceptions.RayError):
            ray.cancel(call)
            ray.wait([call], timeout=TAKE_BACK_S)


def require_ray() -> None:
    """Refuse where Ray is down: ``ray.get`` and ``ray.get_actor`` would quietly start a cluster of their own."""
    if not ray.is_initialized():
        raise ClusterLostError("this node", "Ray is not attached in this process", "call ray.shutdown() last")
