"""Asks the coordinator once. Ray's errors end here.

An actor that restarts is asked again within the deadline (every question may be repeated), one that is gone is a
ClusterLostError, and an error that comes back as data is raised.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ray
import ray.exceptions

from eray._core.naming import COORDINATOR_NAME, NAMESPACE
from eray._core.timing import Backoff, Deadline
from eray._io import clock
from eray.errors import ClusterLostError, error_of

Answer = Mapping[str, Any]
Call = Callable[[Any, str, Sequence[Any], float], Answer]
"""Carries one call to a handle: (handle, method, args, timeout_s) -> answer, with Ray's errors."""


def find_coordinator(*, namespace: str = NAMESPACE, name: str = COORDINATOR_NAME) -> Any | None:
    """Return the handle of the coordinator of the Ray cluster that this process is attached to, or None."""
    require_ray()
    try:
        return ray.get_actor(name, namespace=namespace)
    except ValueError:  # what Ray raises for a name that is not there (FACTS R12)
        return None


def ray_call(handle: Any, method: str, args: Sequence[Any], timeout_s: float) -> Answer:
    """Call a method of the actor and return its answer."""
    require_ray()
    answer: Answer = ray.get(getattr(handle, method).remote(*args), timeout=timeout_s)
    return answer


def ask(
    handle: Any, call: Call, method: str, args: Sequence[Any], timeout_s: float, wait_s: float | None = None
) -> Answer:
    """Return the answer to one question, asked again while the actor restarts.

    ``wait_s`` is how long the actor may keep the question, told as the last argument; the rest of ``timeout_s`` is for
    the answer to come. A question that is asked again is kept for what is left of it.

    Raises:
        ClusterLostError: the actor is gone, or silent for ``timeout_s``.
        ErayError: what the coordinator answered.
    """
    deadline = Deadline.after(timeout_s, now=clock.monotonic())
    backoff, attempt, spare_s = Backoff(), 0, timeout_s - (wait_s or 0.0)
    while True:
        remaining_s = deadline.remaining_s(clock.monotonic())
        kept = () if wait_s is None else (min(wait_s, max(remaining_s - spare_s, 0.0)),)
        try:
            answer = call(handle, method, (*args, *kept), remaining_s)
            break
        except (ray.exceptions.ActorUnavailableError, ray.exceptions.GetTimeoutError) as exc:
            now = clock.monotonic()
            if deadline.is_over(now):
                raise _lost(f"the coordinator did not answer {method} within {timeout_s:g} s") from exc
            clock.sleep(backoff.pause_s(attempt, deadline, now))
            attempt += 1
        except ray.exceptions.RayError as exc:
            raise _lost(f"the coordinator cannot be asked for {method} ({type(exc).__name__})") from exc
    if answer.get("error"):
        raise error_of(answer["error"])
    return answer


def require_ray() -> None:
    """Refuse where Ray is down: ``ray.get`` and ``ray.get_actor`` would quietly start a cluster of their own."""
    if not ray.is_initialized():
        raise ClusterLostError("this node", "Ray is not attached in this process", "call ray.shutdown() last")


def _lost(found: str) -> ClusterLostError:
    return ClusterLostError("head", found, "look at the logs of eray and Ray on the head node")
