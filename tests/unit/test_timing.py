import pytest

from eray._core.timing import Backoff, Deadline, Reminder


def test_deadline_counts_down_to_zero_and_stays_there():
    deadline = Deadline.after(30.0, now=100.0)
    assert [deadline.remaining_s(now) for now in (100.0, 110.0, 130.0, 500.0)] == [30.0, 20.0, 0.0, 0.0]
    assert [deadline.is_over(now) for now in (100.0, 129.9, 130.0, 500.0)] == [False, False, True, True]
    assert deadline.timeout_s == 30.0


def test_deadline_of_negative_timeout_is_over_at_once():
    assert Deadline.after(-5.0, now=7.0) == Deadline(at=7.0, timeout_s=0.0)


@pytest.mark.parametrize(
    ("attempt", "pause_s"), [(0, 0.05), (1, 0.1), (2, 0.2), (4, 0.8), (5, 1.0), (6, 1.0), (10**9, 1.0)]
)
def test_backoff_grows_to_its_limit(attempt, pause_s):
    assert Backoff().pause_s(attempt) == pytest.approx(pause_s)


def test_backoff_without_growth_keeps_its_first_pause():
    assert Backoff(first_s=0.2, limit_s=1.0, factor=1.0).pause_s(50) == 0.2


def test_backoff_never_passes_the_deadline():
    deadline = Deadline.after(1.0, now=0.0)
    assert Backoff().pause_s(9, deadline, now=0.7) == pytest.approx(0.3)
    assert Backoff().pause_s(9, deadline, now=2.0) == 0.0


@pytest.mark.parametrize(
    ("soonest_s", "told", "said"),
    [
        # (seconds since the wait began, text), the lines
        (0, [(0.2, "a"), (3, "a"), (30, "a"), (31, "a")], ["a", None, None, "a, 31 s"]),
        (0, [(0, "a"), (1, "b"), (2, "a")], ["a", "b, 1 s", "a, 2 s"]),
        (
            10,
            [(9, "a"), (10, "a"), (15, "b"), (20, "b"), (49, "b"), (50, "b")],
            [None, "a, 10 s", None, "b, 20 s", None, "b, 50 s"],
        ),
    ],
    ids=["repeated after 30 s", "changed", "calm"],
)
def test_a_wait_is_told_where_it_changed_or_30_s_passed(soonest_s, told, said):
    reminder = Reminder(now=100.0, soonest_s=soonest_s)
    assert [reminder.line(text, 100.0 + at) for at, text in told] == said
