"""What an uncaught error of a member prints: a traceback, unless others tell people of the fault."""

import sys
from types import SimpleNamespace

import pytest

from eray._exit_hooks import ExitHooks
from eray.errors import ErayError, JoinTimeoutError, WorldFailedError

CAUSE = "process 3 on n2 (pid 7) ended with code 7"
FAILED = f"world 'main' (generation 1) failed: {CAUSE}"


def heard(error: ErayError) -> ErayError:
    error.is_heard = True
    return error


@pytest.fixture
def hooks(monkeypatch):
    """Hooks around a plain sys.excepthook, which notes what it is shown; the process is a member."""
    shown, failed = [], []
    member = SimpleNamespace(process_index=2, fail=failed.append)
    monkeypatch.setattr(sys, "excepthook", lambda kind, error, trace: shown.append(error))
    hooks = ExitHooks(lambda: member)
    hooks.install()
    return hooks, shown, failed


@pytest.mark.parametrize(
    ("served_by", "error", "is_shown", "said"),
    [
        ("run", heard(WorldFailedError("main", 1, CAUSE)), False, ""),
        ("tasks", heard(WorldFailedError("main", 1, CAUSE)), False, f"eray: process 2 leaves: {FAILED}\n"),
        ("up", heard(WorldFailedError("main", 1, CAUSE)), False, f"eray: process 2 leaves: {FAILED}\n"),
        (None, heard(WorldFailedError("main", 1, CAUSE)), True, ""),
        ("run", WorldFailedError("launched", 1, CAUSE), True, ""),
        ("run", JoinTimeoutError("main", "process 3", 1.0), True, ""),
        ("run", ValueError("mine"), True, ""),
    ],
    ids=["eray run", "tasks", "eray up", "no supervisor", "a driver's", "its own", "the program's"],
)
def test_error_that_only_repeats_what_is_told_has_no_traceback(served_by, error, is_shown, said, hooks, capsys):
    hooks, shown, failed = hooks
    hooks.served_by = served_by
    if isinstance(error, ErayError):
        with pytest.raises(SystemExit) as ended:
            sys.excepthook(type(error), error, None)
        assert ended.value.code == error.exit_code
    else:
        sys.excepthook(type(error), error, None)
    assert shown == ([error] if is_shown else [])
    assert capsys.readouterr().err == said
    assert len(failed) == 1, "the world hears of it all the same"
