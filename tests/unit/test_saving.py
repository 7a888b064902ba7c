"""The agreement on one step: whatever the order in which processes hear, step and tell, they save at the same one."""

import random

import pytest

from eray._core import answers, events
from eray._core.rendezvous import State, apply
from eray._core.saving import Saving, Steps
from eray._core.world import Facts, JoinRequest, Stage
from eray.errors import UsageError


class Process:
    """One process of the agreement: it steps until it has told, then holds until all have."""

    def __init__(self, index: int, steps: list[int]) -> None:
        self.index, self.ahead, self.rule = index, list(steps), Steps()
        self.saved: list[int] = []
        self.told = self.agreed = False

    @property
    def may_step(self) -> bool:
        return bool(self.ahead) and (self.agreed or not self.told)

    def step(self) -> None:
        if self.rule.should_save(step := self.ahead.pop(0)):
            self.saved.append(step)


def run(random_one: random.Random, count: int, steps: list[int]) -> list[list[int]]:
    """Return the steps at which each process saved, one notice coming somewhere on the way."""
    processes, saving = [Process(index, steps) for index in range(count)], Saving()
    while moves := [(each, move) for each in processes for move in ("step", "tell") if can(each, move)]:
        process, move = random_one.choice(moves)
        if move == "step":
            process.step()
            continue
        process.told = True
        saving = saving.tell(process.index, process.rule.last)
        if saving.is_agreed(count):
            for each in processes:
                each.agreed = True
                each.rule.save_after(saving.last)
    return [process.saved for process in processes]


def can(process: Process, move: str) -> bool:
    return process.may_step if move == "step" else not process.told


def test_processes_save_at_the_same_step_in_any_order() -> None:
    found = set()
    for seed in range(200):
        chance = random.Random(seed)
        first, stride = chance.choice([0, 1, 5000]), chance.choice([1, 1, 10])
        steps = [first + stride * each for each in range(chance.randrange(1, 12))]
        saved = run(chance, chance.randrange(1, 5), steps)
        assert len({tuple(each) for each in saved}) == 1, f"seed {seed}: {saved}"
        found.add(len(saved[0]))
    assert found == {0, 1}, "some were over before they had agreed, and most saved once"


def test_notice_before_the_first_step_saves_at_that() -> None:
    saving = Saving().tell(0, None).tell(1, None)
    assert saving.is_agreed(2)
    steps = Steps()
    steps.save_after(saving.last)
    assert [steps.should_save(step) for step in (7, 8)] == [True, False]


def test_process_that_has_not_stepped_yet_follows_the_others() -> None:
    saving = Saving().tell(0, 4).tell(1, None)
    behind = Steps()
    behind.save_after(saving.last)
    assert [behind.should_save(step) for step in range(7)] == [False] * 5 + [True, False]


def test_same_step_asked_twice_has_the_same_answer() -> None:
    steps = Steps()
    assert steps.should_save(3) is False
    steps.save_after(3)
    assert [steps.should_save(step) for step in (3, 4, 4, 5, 5)] == [False, True, True, False, False]


def test_telling_twice_counts_once() -> None:
    saving = Saving().tell(0, 4)
    assert saving.tell(0, 9) is saving
    assert not saving.is_agreed(2)


def test_giving_up_holds_for_those_who_tell_later() -> None:
    saving = Saving().tell(0, 4).give_up(2)
    assert saving.tell(1, 4) is saving
    assert saving.is_off(left=())


def test_giving_up_after_the_agreement_changes_nothing() -> None:
    agreed = Saving().tell(0, 4).tell(1, 5)
    assert agreed.give_up(2) is agreed


def test_process_that_left_without_a_word_ends_the_agreement() -> None:
    saving = Saving().tell(0, 4)
    assert saving.is_off(left=[1])
    assert not saving.is_off(left=[0])


@pytest.mark.parametrize("step", [1.0, "1", None])
def test_step_that_is_no_whole_number_is_refused(step: object) -> None:
    with pytest.raises(UsageError, match="whole number"):
        Steps().should_save(step)


def test_step_that_goes_back_is_refused_and_changes_nothing() -> None:
    steps = Steps()
    steps.should_save(5)
    with pytest.raises(UsageError, match=r"should_save\(4\) after should_save\(5\)"):
        steps.should_save(4)
    assert steps.last == 5


def test_step_of_numpy_is_a_whole_number() -> None:
    numpy = pytest.importorskip("numpy")
    steps = Steps()
    steps.should_save(numpy.int64(3))
    assert type(steps.last) is int


def running_world(count: int) -> State:
    state = State()
    for index in range(count):
        facts = Facts(node="n1", node_rank=0, local_index=index, local_count=count, pid=100 + index)
        asked = JoinRequest(world="w", process_index=index, process_count=count, join_id=str(index), facts=facts)
        state = apply(state, events.Joined(asked), 1.0)
    for index in range(count):
        state = apply(state, events.Reported("w", 1, index, Stage.RUNNING), 2.0)
    return state


def test_nobody_is_told_another_end_of_the_agreement_than_the_first() -> None:
    ends = set()
    for seed in range(500):
        chance = random.Random(seed)
        count = chance.randrange(1, 5)
        state, final = running_world(count), None
        for now in range(60):
            index = chance.randrange(count)
            event = chance.choices(
                [
                    events.StepTold("w", 1, index, chance.choice([None, *range(5)])),
                    events.SavingGivenUp("w", 1, index),
                    events.Reported("w", 1, index, Stage.LEFT),
                    events.Warned("SIGUSR1 at n1"),
                    events.ProcessDied("w", 1, index, "killed"),
                ],
                weights=[60, 2, 2, 5, 1],
            )[0]
            before, state = state, apply(state, event, 3.0 + now)
            if state is not before:
                state = State.model_validate_json(state.model_dump_json())
            answer = answers.saving_answer(state, "w", 1, chance.randrange(count))
            if answer["done"] and answer["failure"] is None:
                end = (answer["saves"], answer["after"] if answer["saves"] else None, answer["given_up"])
                final = final or end
                assert end[:2] == final[:2], f"seed {seed}"
                ends.add(end[0])
        assert state.worlds["w"].failure is not None or final is not None
    assert ends == {True, False}


def test_warning_is_one_event_however_often_it_comes() -> None:
    first = apply(running_world(2), events.Warned("SIGUSR1 at n1"), 7.0)
    assert apply(first, events.Warned("SIGUSR2 at n2"), 8.0) is first
    assert first.preemption is not None
    assert (first.preemption.at, first.preemption.reason) == (7.0, "SIGUSR1 at n1")


def test_agreement_wakes_those_who_wait_once() -> None:
    state = running_world(3)
    versions = []
    for index in range(3):
        state = apply(state, events.StepTold("w", 1, index, 4), 3.0)
        versions.append(state.version)
    assert versions[0] == versions[1] == versions[2] - 1
