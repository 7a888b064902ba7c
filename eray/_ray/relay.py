"""Relays what processes ask of the coordinator: a node's supervisor gathers it, the head's asks for all at once.

So a world needs one driver of Ray, not one a process, and the coordinator takes one call a node (``relayed``: the
process's side).
"""

import asyncio
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Message = Mapping[str, Any]
Send = Callable[[Message], None]
WAITING = frozenset({"join", "await_address", "await_stage", "barrier", "tell_step"})
"""Questions that the coordinator keeps; how long, their last argument says."""
AT_ONCE = frozenset({"publish", "report", "give_up_saving"})
JOIN_GATHER_S, GATHER_S = 0.5, 0.02
"""How long a node's first question waits for the other processes' same one; when all have asked, it goes at once."""
ENDS = ("left", "failed")
MOST = 128
"""So many questions go in one message: their answers must fit one too."""


_batches = itertools.count(1)
"""Never the same twice: the head may still answer what this node asked before it lost the head and came again."""


@dataclass(frozen=True)
class _Question:
    send: Send
    number: int
    args: tuple[Any, ...]
    wait_s: float | None


class NodeRelay:
    """A node's part. ``ask`` sends a message to the head, ``awaited`` says how many processes of the node may ask."""

    def __init__(self, ask: Send, awaited: Callable[[], int]) -> None:
        self._ask, self._awaited = ask, awaited
        self._gathered: dict[tuple[Any, ...], list[_Question]] = {}
        self._timers: dict[tuple[Any, ...], asyncio.TimerHandle] = {}
        self._asked: dict[int, list[_Question]] = {}

    def take(self, send: Send, message: Message) -> None:
        """Take a process's question; ``send`` carries the answer to it."""
        method, args = str(message["method"]), tuple(message["args"])
        args, wait_s = (args[:-1], float(args[-1])) if method in WAITING else (args, None)
        same = _same(method, args)
        gathered = self._gathered.setdefault(same, [])
        gathered.append(_Question(send, int(message["number"]), args, wait_s))
        is_end = method == "report" and args[3] in ENDS
        if is_end or len(gathered) >= min(self._awaited(), MOST):
            self._go(same)
        elif same not in self._timers:
            gather_s = JOIN_GATHER_S if method == "join" else GATHER_S
            self._timers[same] = asyncio.get_running_loop().call_later(gather_s, self._go, same)

    def answered(self, message: Message) -> None:
        """Hand the head's answers to those who asked; those to an earlier life of this node are dropped."""
        if (questions := self._asked.pop(message["batch"], None)) is None:
            return
        for question, answer in zip(questions, message["answers"], strict=True):
            question.send({"type": "answer", "number": question.number, "answer": answer})

    def _go(self, same: tuple[Any, ...]) -> None:
        if (timer := self._timers.pop(same, None)) is not None:
            timer.cancel()
        batch = next(_batches)
        questions = self._asked[batch] = self._gathered.pop(same)
        # Kept as long as the most impatient says: that is the process which tells people who is missing.
        wait_s = min((each.wait_s for each in questions if each.wait_s is not None), default=None)
        calls = [each.args for each in questions]
        self._ask({"type": "ask", "batch": batch, "method": same[0], "calls": calls, "wait_s": wait_s})


def _same(method: str, args: Sequence[Any]) -> tuple[Any, ...]:
    """Return what questions must have in common to be answered at the same moment: all but who asks."""
    if method == "join":
        return method, args[0]["world"], args[0]["generation"]
    return method, args[0], args[1], *args[3:]


def without_answer(message: Message, why: Mapping[str, Any]) -> dict[str, Any]:
    """Return the head's message for a node whose questions could not be asked, and ``why``."""
    return answers_to(message, [why] * len(message["calls"]))


def answers_to(message: Message, answers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the head's message with the coordinator's answers to a node's questions."""
    return {"type": "answers", "batch": message["batch"], "answers": list(answers)}
