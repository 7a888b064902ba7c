"""What the head makes of a process that failed: the same cause, whether the world may start again or not."""

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from test_nodespec import SPEC

from eray._core.lives import Rule
from eray._core.nodespec import WorldSpec
from eray._ray.failures import Failures
from eray._ray.news import News
from eray.errors import JoinError

END = "process 1 on n1 (pid 7) ended with code 1"
RAISED = "process 1 on n1: raised ValueError: loss is NaN (pid 7)"


def failed_as_often_as_it_may(max_restarts: int, raised: str | None) -> tuple[int, str | None, list[Any]]:
    """Return the code, the cause, and what the nodes were told, of a world whose process 1 ends with 1 each time."""

    async def run() -> tuple[int, str | None, list[Any]]:
        told: list[Any] = []
        nodes: Any = SimpleNamespace(send=lambda rank, message: told.append(message), broadcast=told.append)
        driver: Any = SimpleNamespace(died=None, declare=None)
        world = WorldSpec("main", ("python", "x.py"), (2,), None, Rule(max_restarts))
        failures = Failures(
            replace(SPEC, nodes=("n1",), world=world),
            nodes,
            driver,
            News(asyncio.Event()),
            can_hear=lambda: True,
            outlives_nodes=lambda: False,
            spawn=lambda task: task.close(),
        )
        generations = failures.generations
        assert generations is not None
        generations.start()
        for generation in range(1, max_restarts + 2):
            generations.runs(generation)
            if raised is not None:
                failures.world_failed(generation, raised, JoinError.exit_code, 1)
            end = {"process_index": 1, "generation": generation, "code": 1, "cause": END, "tail": "", "shown": False}
            failures.child_ended(end)
            generations.stopped(0, generation)
        code = await asyncio.wait_for(failures.result, 5)
        return code, failures.outcome.cause, [each["cause"] for each in told if each["type"] != "start-processes"]

    return asyncio.run(run())


@pytest.mark.parametrize("max_restarts", [0, 1, 2])
@pytest.mark.parametrize("raised", [None, RAISED], ids=["ended", "raised"])
def test_cause_is_what_the_process_said_of_itself_and_each_generation_hears_it(
    raised: str | None, max_restarts: int, capsys: pytest.CaptureFixture[str]
) -> None:
    cause = raised or END
    assert failed_as_often_as_it_may(max_restarts, raised) == (1, cause, [cause] * (max_restarts + 1))
    said = capsys.readouterr().err.splitlines()
    for words in {cause, END}:
        assert said.count(f"eray: {words}") == max_restarts + 1
