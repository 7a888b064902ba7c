import time

import pytest

from eray._ray.asking import NoAnswer, ask
from eray.errors import ClusterLostError

WAIT_S, SPARE_S = 0.1, 0.3


class Actor:
    """An actor that dies late in the first question, and keeps the others for as long as they say."""

    def __init__(self, dies_after_s):
        self.dies_after_s, self.kept = dies_after_s, []

    def call(self, handle, method, args, timeout_s):
        *_, wait_s = args
        self.kept.append(wait_s)
        if len(self.kept) == 1:
            time.sleep(self.dies_after_s)
            raise NoAnswer("it restarts")
        assert wait_s < timeout_s, "the answer can still come in time"
        time.sleep(wait_s)
        return {"done": False}


@pytest.mark.parametrize("dies_after_s", [0.025, 0.09])
def test_question_to_an_actor_that_restarts_is_kept_for_what_is_left(dies_after_s):
    actor, began = Actor(dies_after_s), time.monotonic()
    assert ask(None, actor.call, "join", ("w",), WAIT_S + SPARE_S, WAIT_S) == {"done": False}
    first, second = actor.kept
    assert first == pytest.approx(WAIT_S, abs=0.05)
    assert second <= WAIT_S - dies_after_s
    assert time.monotonic() - began < WAIT_S + SPARE_S


def test_actor_that_stays_away_is_lost():
    def call(handle, method, args, timeout_s):
        raise NoAnswer("it restarts")

    with pytest.raises(ClusterLostError, match=r"did not answer join within 0\.1 s"):
        ask(None, call, "join", (), 0.1)
