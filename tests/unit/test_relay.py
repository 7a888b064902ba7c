"""What a node's supervisor makes of its processes' questions: one message, and to each process its own answer."""

import asyncio

import pytest

from eray._ray.relay import NodeRelay, answers_to, without_answer

PLACE = ("main", 1)


def join(index):
    return "join", [{"world": "main", "generation": None, "process_index": index}, 10.0 - index]


def barrier(index, name="a"):
    return "barrier", [*PLACE, index, name, 1, 3.0]


def report(index, stage):
    return "report", [*PLACE, index, stage, ""]


async def asked(questions, processes):
    """Return the messages to the head, each of them answered by its calls, and what each process got."""
    messages, heard = [], {}
    relay = NodeRelay(messages.append, lambda: processes)
    for number, (method, args) in enumerate(questions):
        question = {"type": "ask", "number": number, "method": method, "args": args}
        relay.take(lambda answer: heard.update({answer["number"]: answer["answer"]}), question)
    while sum(len(message["calls"]) for message in messages) < len(questions):
        await asyncio.sleep(0.001)
    for message in messages:
        relay.answered(answers_to(message, [{"to": call} for call in message["calls"]]))
    return messages, heard


@pytest.mark.parametrize(
    ("questions", "sizes"),
    [
        ([join(0), join(1), join(2)], [3]),
        ([join(0), join(1)], [2]),  # the third does not come in time
        ([report(0, "running"), report(1, "running"), report(2, "running")], [3]),
        ([report(0, "left"), report(1, "left")], [1, 1]),  # who leaves waits for nobody
        ([report(0, "failed")], [1]),
        ([barrier(0), barrier(1, "b"), barrier(2)], [1, 2]),  # each barrier opens at its own time
    ],
)
def test_same_questions_go_together(questions, sizes):
    messages, heard = asyncio.run(asked(questions, 3))
    assert sorted(len(message["calls"]) for message in messages) == sizes
    for number, (method, args) in enumerate(questions):
        told = args[:-1] if method in ("join", "barrier") else args
        assert heard[number] == {"to": tuple(told)}


def test_questions_are_kept_as_long_as_the_most_impatient_says():
    ((message,), _) = asyncio.run(asked([join(0), join(1), join(2)], 3))
    assert message["wait_s"] == 8.0
    ((message,), _) = asyncio.run(asked([report(0, "running")], 1))
    assert message["wait_s"] is None


def test_questions_that_could_not_be_asked_are_answered_alike():
    message = {"type": "ask", "batch": 7, "method": "join", "calls": [[1], [2]], "wait_s": 3.0}
    told = without_answer(message, {"no_answer": True})
    assert told == {"type": "answers", "batch": 7, "answers": [{"no_answer": True}] * 2}


def test_answers_to_an_earlier_life_of_the_node_are_dropped():
    async def two_lives():
        messages, heard = [], []
        for life in range(2):
            relay = NodeRelay(messages.append, lambda: 1)
            method, args = join(life)
            relay.take(heard.append, {"type": "ask", "number": life, "method": method, "args": args})
        for message, to in zip(messages, ("first", "second"), strict=True):
            relay.answered(answers_to(message, [{"to": to}]))
        return heard

    assert asyncio.run(two_lives()) == [{"type": "answer", "number": 1, "answer": {"to": "second"}}]
