"""What a launched function raised is shown by its own frames, all of them, and nothing of what called it."""

import pickle
import traceback

import pytest
from ray.exceptions import RayTaskError

from eray._ray.frames import keep_frames, show_frames
from eray._slurm.hostlist import expand_hostlist
from eray.errors import SlurmFormatError

LOST = "Traceback (most recent call last):\n    ~~^^^^^\nKeyError: 'a'\n"
"""As Ray sends it: without the first frame."""
PROCESS = "ray::GangProcess.run() (pid=7, ip=10.0.0.1)"


class Sealed(Exception):
    __slots__ = ()

    def __setattr__(self, name: str, value: object) -> None:
        if not name.startswith("__t"):  # __traceback__
            raise AttributeError(name)


def chained() -> None:
    try:
        {}["a"]  # the first cause
    except KeyError as exc:
        raise ValueError("no layer") from exc


def grouped() -> None:
    raise ExceptionGroup("many", [ValueError("x"), KeyError("y")])


def noted() -> None:
    error = ValueError("no layer")
    error.add_note("a note of mine")
    raise error


def sealed() -> None:
    raise Sealed("sealed")


def sent(error: BaseException) -> Exception:
    """Return it as it comes to the driver."""
    remote = RayTaskError(
        "run", LOST, pickle.loads(pickle.dumps(error)), proctitle="ray::GangProcess.run", pid=7, ip="10.0.0.1"
    )
    return remote.as_instanceof_cause()


def shown(function) -> str:
    with pytest.raises((Sealed, ValueError, ExceptionGroup)) as caught:
        function()
    error = caught.value.with_traceback(caught.value.__traceback__.tb_next)  # without this function's
    keep_frames(error)
    arrived = sent(error)
    show_frames(arrived)
    return "".join(traceback.format_exception(arrived)).replace("\x1b[36m", "").replace("\x1b[39m", "")


def test_all_frames_of_a_chain_are_shown_behind_the_process():
    text = shown(chained)
    assert text.startswith(f"ray.exceptions.RayTaskError(ValueError): {PROCESS}\n  File ")
    assert text.index("the first cause") < text.index("KeyError: 'a'") < text.index('raise ValueError("no layer")')
    assert text.count("in chained") == 2
    assert text.endswith("ValueError: no layer\n")


def test_group_has_its_frames_and_members():
    text = shown(grouped)
    assert text.count("in grouped") == 1
    assert "ValueError: x" in text
    assert "the first cause" not in text
    assert "~~^^" not in text


def test_notes_are_shown_once():
    assert shown(noted).count("a note of mine") == 1


def test_exception_that_takes_no_frames_is_shown_as_ray_has_it():
    assert "~~^^^^^\nKeyError: 'a'" in shown(sealed)


def test_error_of_eray_is_shown_without_frames_of_eray():
    with pytest.raises(SlurmFormatError) as caught:
        expand_hostlist("n[1-")
    error = caught.value.with_traceback(caught.value.__traceback__.tb_next)
    keep_frames(error)
    assert error.__eray_frames__ == f"eray.errors.SlurmFormatError: {error}\n"


def test_fault_of_eray_keeps_all_frames():
    with pytest.raises(AttributeError) as caught:
        expand_hostlist(3)
    fault = caught.value.with_traceback(caught.value.__traceback__.tb_next)
    keep_frames(fault)
    assert "in expand_hostlist" in fault.__eray_frames__


def test_other_errors_are_left_alone():
    error = ValueError("x")
    show_frames(error)
    assert str(error) == "x"
