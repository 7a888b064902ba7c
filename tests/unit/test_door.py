"""An error of eray's reaches the caller of a public function without eray's own frames."""

import inspect
import traceback
from contextlib import suppress

import pytest

import eray
from eray import errors
from eray._core.outcome import ProgramFailure
from eray._door import door

INNER = "in inner"


def inner(error: Exception, cause: Exception | None) -> None:
    raise error from cause


@door
def public(error: Exception, cause: Exception | None = None) -> None:
    inner(error, cause)


SETTING = errors.SettingError("ERAY_LOG", "loud", "must be one of debug, info, warning, error")
CAUSE = OSError("no such device")
FAILED = errors.WorldFailedError("train", 1, "process 2 ended with code 7")


class Carrier(ProgramFailure):
    error = KeyError("the program's own")


@pytest.mark.parametrize(("log", "has_frames"), [("info", False), ("debug", True)])
def test_what_a_program_raised_reaches_the_caller_as_it_is(log, has_frames, monkeypatch):
    monkeypatch.setenv("ERAY_LOG", log)
    with suppress(KeyError):
        inner(Carrier.error, None)
    with pytest.raises(KeyError, match="the program's own") as caught:
        public(Carrier(), CAUSE)
    text = "".join(traceback.format_exception(caught.value))
    assert (INNER in text, "During handling" in text) == (has_frames, False)


@pytest.mark.parametrize(
    ("error", "log", "has_frames", "has_cause"),
    [
        (SETTING, None, False, False),
        (SETTING, "info", False, False),
        (SETTING, " Debug", True, True),
        (SETTING, "loud", False, False),
        (FAILED, None, False, True),
        (RuntimeError("a fault"), None, True, True),
    ],
    ids=str,
)
def test_traceback_of_an_error(error, log, has_frames, has_cause, monkeypatch):
    monkeypatch.delenv("ERAY_LOG", raising=False)
    if log is not None:
        monkeypatch.setenv("ERAY_LOG", log)
    with pytest.raises(type(error)) as caught:
        public(error, CAUSE)
    text = "".join(traceback.format_exception(caught.value))
    assert (INNER in text, "no such device" in text) == (has_frames, has_cause)
    assert text.endswith(f"{error}\n")
    assert text.count(str(error)) == 1


def test_public_functions_refuse_a_wrong_setting_in_one_frame_of_eray(monkeypatch):
    monkeypatch.setenv("ERAY_JOIN_TIMEOUT_S", "soon")
    for call in (eray.connect, eray.attach, eray.coordinator, lambda: eray.launch(print), eray.auto_ray_cluster):
        with pytest.raises(errors.SettingError) as caught:
            call()
        modules = [frame.filename.rpartition("/eray/")[2] for frame in traceback.extract_tb(caught.value.__traceback__)]
        assert [name for name in modules if name.startswith("_")] == ["_door.py"]


def test_signatures_and_docstrings_are_kept():
    assert "process_count" in inspect.signature(eray.connect).parameters
    assert eray.launch.__doc__.startswith("Run ``fn(*args, **kwargs)``")
