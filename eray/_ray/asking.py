"""Asks the coordinator once, by whatever carries the call: Ray (``calls``), or the node's supervisor (``relayed``).

An actor that restarts is asked again within the deadline (every question may be repeated), one that is gone is a
ClusterLostError, and an error that comes back as data is raised.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from eray._core.timing import Backoff, Deadline
from eray._io import clock
from eray.errors import ClusterLostError, ConnectionStateError, error_of

Answer = Mapping[str, Any]
Call = Callable[[Any, str, Sequence[Any], float], Answer]
"""Carries one call to a handle: (handle, method, args, timeout_s) -> answer; raises NoAnswer or Unreachable."""


class NoAnswer(Exception):
    """The coordinator did not answer now: it restarts, or the time was over."""


class Unreachable(Exception):
    """The coordinator cannot be asked any more; the text says why."""


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
        except NoAnswer as exc:
            now = clock.monotonic()
            if deadline.is_over(now):
                raise _lost(f"the coordinator did not answer {method} within {timeout_s:g} s") from exc
            clock.sleep(backoff.pause_s(attempt, deadline, now))
            attempt += 1
        except Unreachable as exc:
            raise _lost(f"the coordinator cannot be asked for {method} ({exc})") from exc
    if answer.get("error"):
        raise error_of(answer["error"])
    return answer


def closed() -> ConnectionStateError:
    """Return the error of calls that were stopped."""
    return ConnectionStateError("the connection is closed")


def _lost(found: str) -> ClusterLostError:
    return ClusterLostError("head", found, "look at the logs of eray and Ray on the head node")
