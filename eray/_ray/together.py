"""The head's part of the relay (``relay``): it asks the coordinator what the processes of a node want to know."""

from collections.abc import Mapping
from typing import Any

from eray._ray.relay import answers_to, without_answer


async def ask_together(handle: Any | None, message: Mapping[str, Any]) -> dict[str, Any]:
    """Return the message that answers a node's; ``handle`` is the coordinator's, None where this driver has left.

    An actor that restarts is asked again by the processes, each within its own deadline.
    """
    import ray
    import ray.exceptions

    if handle is None or not ray.is_initialized():  # the call would start a cluster of its own
        return without_answer(message, {"unreachable": "the head has left Ray"})
    try:
        answer = await handle.together.remote(message["method"], message["calls"], message["wait_s"])
    except ray.exceptions.ActorUnavailableError:
        return without_answer(message, {"no_answer": True})
    except ray.exceptions.RayError as exc:
        return without_answer(message, {"unreachable": type(exc).__name__})
    return without_answer(message, answer) if answer.get("error") else answers_to(message, answer["answers"])
