"""One process's part in a preemption, with a coordinator that is the real rule behind a lock."""

import faulthandler
import logging
import os
import random
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from eray._core.saving import Saving
from eray._preemption import Preemption
from eray._ray.client import SavePoint
from eray._watch import Watcher
from eray.errors import ConnectionStateError, JoinTimeoutError, WorldFailedError

WAIT_S = 20.0


class Agreement:
    """What the coordinator does with the steps of ``count`` processes; ``stop`` ends the wait of one process."""

    def __init__(self, count: int) -> None:
        self.saving, self.count = Saving(), count
        self.changed, self.stopped = threading.Condition(), set[int]()

    def tell(self, index: int, step: int | None) -> SavePoint:
        with self.changed:
            self.saving = self.saving.tell(index, step)
            self.changed.notify_all()
            assert self.changed.wait_for(lambda: self.is_settled or index in self.stopped, WAIT_S)
            if not self.is_settled:
                raise ConnectionStateError("the connection is closed")
            return SavePoint(self.saving.last)

    @property
    def is_settled(self) -> bool:
        return self.saving.is_agreed(self.count)

    def stop(self, index: int) -> None:
        with self.changed:
            self.stopped.add(index)
            self.changed.notify_all()

    def member(self, index: int) -> Preemption:
        preemption = Preemption()
        self.serve(preemption, index)
        return preemption

    def serve(self, preemption: Preemption, index: int, told: "list[str] | None" = None) -> None:
        preemption.serve(
            tell=(told if told is not None else []).append,
            agree=lambda step: self.tell(index, step),
            stop=lambda: self.stop(index),
        )


def test_processes_of_different_pace_save_at_one_step() -> None:
    for seed in range(20):
        chance = random.Random(seed)
        count = chance.randrange(1, 5)
        agreement = Agreement(count)
        members = [agreement.member(index) for index in range(count)]
        at = [chance.randrange(0, 300) for _ in range(count)]  # when each hears, by its own steps

        def run(index: int, members: list[Preemption] = members, at: list[int] = at) -> list[int]:
            steps: list[int] = []
            for step in range(10_000_000):
                if step == at[index]:
                    members[index].take("SIGUSR1 at n1")
                if members[index].should_save(step):
                    steps.append(step)
                if steps and step == steps[0] + 50:
                    break
            return steps

        with ThreadPoolExecutor(count) as pool:
            saved = list(pool.map(run, range(count)))
        assert len(saved[0]) == 1, f"seed {seed}: {saved}"
        assert len({tuple(each) for each in saved}) == 1, f"seed {seed}: {saved}"


def test_notice_before_the_process_is_served_is_taken_then() -> None:
    agreement, preemption = Agreement(1), Preemption()
    preemption.take("SIGUSR1 at n1")
    assert preemption.reason == "SIGUSR1 at n1"
    assert preemption.should_save(4) is False
    agreement.serve(preemption, 0)
    with agreement.changed:
        assert agreement.changed.wait_for(lambda: agreement.is_settled, WAIT_S)
    assert preemption.should_save(5) is True


def test_second_notice_changes_nothing() -> None:
    agreement = Agreement(1)
    preemption = agreement.member(0)
    preemption.take("SIGUSR1 at n1")
    preemption.take("SIGUSR2 at n2")
    assert preemption.reason == "SIGUSR1 at n1"


def test_close_ends_the_wait_of_the_program() -> None:
    agreement = Agreement(2)
    preemption = agreement.member(0)
    preemption.take("SIGUSR1 at n1")
    with agreement.changed:
        assert agreement.changed.wait_for(lambda: agreement.saving.heard, WAIT_S)
    answers: list[bool] = []
    waiting = threading.Thread(target=lambda: answers.append(preemption.should_save(9)), daemon=True)
    waiting.start()
    waiting.join(0.1)
    assert waiting.is_alive()
    preemption.close()
    waiting.join(WAIT_S)
    assert answers == [False]


def test_agreement_that_fails_leaves_the_answer_false_and_says_why(caplog: pytest.LogCaptureFixture) -> None:
    asked = threading.Event()

    def agree(step: int | None) -> SavePoint | None:
        asked.set()
        raise JoinTimeoutError("main", "process 1 (n2)", 30.0, "tell its step")

    preemption = Preemption()
    preemption.serve(tell=lambda what: None, agree=agree, stop=lambda: None)
    with caplog.at_level(logging.WARNING):
        preemption.take("SIGUSR1 at n1")
        assert asked.wait(WAIT_S)
        assert [preemption.should_save(step) for step in range(3)] == [False] * 3
    assert "should_save() stays False: world 'main': process 1 (n2) did not tell its step within 30 s" in caplog.text


@pytest.fixture
def usr1() -> Iterator[None]:
    """Restore SIGUSR1's default, which these tests need, afterwards."""
    before = signal.signal(signal.SIGUSR1, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGUSR1, before)


def tells(preemption: Preemption) -> "tuple[list[str], threading.Event]":
    told, is_told = list[str](), threading.Event()

    def tell(what: str) -> None:
        told.append(what)
        is_told.set()

    preemption.serve(tell=tell, agree=lambda step: None, stop=lambda: None)
    return told, is_told


def test_signal_without_a_handler_is_told(usr1: None) -> None:
    preemption = Preemption()
    preemption.catch(["USR1"])
    os.kill(os.getpid(), signal.SIGUSR1)  # before anybody can be told
    told, is_told = tells(preemption)
    assert is_told.wait(WAIT_S)
    assert told == ["SIGUSR1"]
    preemption.close()
    assert signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL


def test_signal_with_a_handler_stays_the_programs(usr1: None) -> None:
    received: list[int] = []
    signal.signal(signal.SIGUSR1, lambda number, frame: received.append(number))
    preemption = Preemption()
    preemption.catch(["USR1"])
    told, _ = tells(preemption)
    os.kill(os.getpid(), signal.SIGUSR1)
    preemption.close()
    assert (received, told) == ([signal.SIGUSR1], [])


def test_signal_with_a_handler_in_c_stays_the_programs(usr1: None, tmp_path: Path) -> None:
    preemption = Preemption()
    with (tmp_path / "stacks").open("w+") as stacks:
        faulthandler.register(signal.SIGUSR1, file=stacks)
        try:
            preemption.catch(["USR1"])
            os.kill(os.getpid(), signal.SIGUSR1)
        finally:
            faulthandler.unregister(signal.SIGUSR1)
        assert "most recent call first" in (tmp_path / "stacks").read_text()


def test_signal_that_comes_late_does_not_end_a_process_that_has_left(usr1: None) -> None:
    preemption = Preemption()
    preemption.catch(["USR1"])
    tells(preemption)
    preemption.take("SIGUSR1 at n1")
    preemption.close()
    os.kill(os.getpid(), signal.SIGUSR1)
    assert signal.getsignal(signal.SIGUSR1) is not signal.SIG_DFL


class Follows:
    """The coordinator's answers to one follower, in order; the last one is repeated."""

    def __init__(self, *answers: "str | Exception | None") -> None:
        self.answers = list(answers)

    def follow(self, world: str, generation: int, process_index: int, *, warned: bool) -> str | None:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.mark.parametrize(
    ("answers", "heard"),
    [
        ([None, "SIGUSR1 at n1", None, ConnectionStateError("closed")], ["quiet", "SIGUSR1 at n1", "quiet"]),
        (["SIGUSR1 at n1", WorldFailedError("w", 1, "it died")], ["SIGUSR1 at n1", (5, "it died")]),
        ([WorldFailedError("w", 1, "it died")], [(5, "it died")]),
        ([ConnectionStateError("closed")], []),
    ],
)
def test_watcher_says_what_it_hears_until_the_end(answers: list[object], heard: list[object]) -> None:
    said: list[object] = []
    before = set(threading.enumerate())
    Watcher(
        Follows(*answers),  # type: ignore[arg-type]
        "w",
        1,
        0,
        on_failed=lambda cause, code: said.append((code, cause[-7:])),
        on_preemption=said.append,
        on_quiet=lambda: said.append("quiet"),
    )
    for thread in set(threading.enumerate()) - before:
        thread.join(WAIT_S)
    assert said == heard
