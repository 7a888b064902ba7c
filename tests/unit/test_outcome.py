import pytest

from eray._core.outcome import Outcome, keeps_logs

# what happens, in order, to a world of three processes, and the code of the command
CASES = {
    "all_end_well": ([("end", 0, 0), ("end", 2, 0), ("end", 1, 0)], 0),
    "first_bad_code_counts": ([("end", 2, 7)], 7),
    "bad_code_after_good_ones_counts": ([("end", 0, 0), ("end", 1, 137)], 137),
    "followers_do_not_count": ([("fail", "2 raised", 5, 2), ("end", 0, 5), ("end", 1, 5), ("end", 2, 1)], 1),
    "aborted_follower_is_not_the_culprit": ([("fail", "2 raised", 5, 2), ("end", 0, 134), ("end", 2, 1)], 1),
    "culprit_that_ended_well_leaves_the_told_code": (
        [("fail", "2 raised", 5, 2), ("end", 0, 5), ("end", 1, 5), ("end", 2, 0)],
        5,
    ),
    "process_that_ended_well_too_early_leaves_the_told_code": (
        [("end", 1, 0), ("fail", "1 never joined", 5, 1), ("end", 0, 5), ("end", 2, 1)],
        5,
    ),
    "failure_of_the_cluster": ([("fail", "lost", 4, None), ("end", 0, 4), ("end", 1, 4), ("end", 2, 4)], 4),
    "own_code_beats_the_failure_of_the_cluster": ([("fail", "lost", 4, None), ("end", 0, 4), ("end", 1, 9)], 9),
    "lost_processes_are_not_awaited": ([("fail", "lost", 4, None), ("lost", [1, 2]), ("end", 0, 4)], 4),
    "last_processes_are_lost": ([("end", 0, 0), ("fail", "lost", 4, None), ("lost", [1, 2])], 4),
    "second_cause_changes_nothing": ([("fail", "a", 4, None), ("fail", "b", 5, 0), ("end", 0, 3)], 3),
}


@pytest.mark.parametrize(("events", "code"), CASES.values(), ids=CASES)
def test_outcome_decides_the_code(events, code):
    outcome, decided = Outcome({0, 1, 2}), None
    for kind, *rest in events:
        assert decided is None, "decided before the last event"
        if kind == "end":
            decided = outcome.ended(*rest)
        elif kind == "lost":
            decided = outcome.lost(*rest)
        else:
            outcome.failed(*rest)
    assert decided == code


def test_outcome_keeps_the_first_cause():
    outcome = Outcome({0})
    assert outcome.failed("first", 4)
    assert not outcome.failed("second", 5)
    assert outcome.cause == "first"


@pytest.mark.parametrize(
    ("job", "code", "kept"), [("7", 0, True), ("7", 9, True), (None, 4, True), (None, 0, False), (None, 5, False)]
)
def test_logs_are_kept_of_jobs_and_where_the_cluster_failed(job, code, kept):
    assert keeps_logs(job, code) is kept
