"""The frames of an exception that a launched function raised, sent with it: Ray's text lacks some and adds others."""

import traceback
from contextlib import suppress
from typing import Any

from ray.exceptions import RayTaskError

from eray.errors import ErayError

_FRAMES = "__eray_frames__"
_HEADING = "Traceback (most recent call last):\n"
"""For which Ray's text has the process's pid and node."""


def keep_frames(error: BaseException) -> None:
    """Write the traceback into an exception that leaves this process, from the program's first frame on.

    Without its notes, which are sent by themselves. What of eray or Ray led to the program is left out.
    """
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_globals.get("__name__", "").startswith("eray."):
        frames = frames.tb_next
    if frames is None and not isinstance(error, ErayError) and error.__cause__ is None:
        frames = error.__traceback__  # a fault of eray's
    shown = traceback.TracebackException(type(error), error, frames)
    shown.__notes__ = None
    with suppress(AttributeError):  # its class has slots
        setattr(error, _FRAMES, "".join(shown.format()))


def show_frames(error: BaseException) -> None:
    """Let an exception that came here from another process be printed with the frames that were kept there, if any."""
    kept = getattr(error, _FRAMES, None) if isinstance(error, RayTaskError) else None
    if kept is None:
        return
    if type(error) is RayTaskError:
        error.traceback_str = _HEADING + kept.removeprefix(_HEADING)
        return
    process, _, _ = ("" if isinstance(error, BaseExceptionGroup) else str(error)).partition("\n")
    text = f"{process}\n{kept.removeprefix(_HEADING).rstrip()}".lstrip()
    made: Any = type(error)  # Ray makes a class for each such error
    made.__str__ = lambda self: text
