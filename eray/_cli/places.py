"""The logs that the lives of clusters left in the home, and those of this node's: what `eray logs` shows."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from eray._core import naming
from eray._io import files, logs
from eray._io.logs import LogFile
from eray._job_files import names_in, told_in

if TYPE_CHECKING:
    from eray._core.picture import Picture

KEPT, LIVE = "kept in", "live on this node in"


@dataclass(frozen=True)
class Place:
    """The logs of one life of a cluster, the newest first; ``about`` tells how it ended, where that is kept."""

    job: str
    kind: str
    directory: str
    logs: list[LogFile]
    about: Mapping[str, Any] | None = None

    @property
    def at(self) -> float:
        """The unix time of the last that is known of it."""
        ended = (self.about or {}).get("taken_at", 0.0)
        return max([log.modified for log in self.logs[:1]] + [ended if isinstance(ended, float) else 0.0])

    @cached_property
    def picture(self) -> "Picture | None":
        """How it was at its end, None where that is not known."""
        if self.about is None:
            return None
        from pydantic import ValidationError

        from eray._core.picture import Picture

        try:
            return Picture.model_validate(self.about)
        except ValidationError:
            return None


def kept_places(kept: str) -> Iterable[Place]:
    """Yield each life that left logs, or how it ended."""
    lives: dict[str, tuple[str, dict[str, Any] | None]] = {}
    for name in names_in(kept):
        for life in names_in(os.path.join(kept, name, "logs")):
            lives.setdefault(os.path.join(kept, name, "logs", life), (name, None))
        for told in told_in(os.path.join(kept, name), "picture"):
            key = str(told.get("key"))
            home = key if name == naming.LOCAL else name
            lives[os.path.join(kept, home, "logs", f"{key}r{told.get('restart')}")] = home, told
    for directory, (name, about) in lives.items():
        yield from _place(name, KEPT, directory, logs.logs_below(directory), about)


def live_places(live: str) -> Iterable[Place]:
    """Yield each life that has logs on this node; raises DirectoryError where others can change them."""
    if os.path.lexists(live):
        files.check_private(live)
    for name in names_in(live):
        run_dir = os.path.join(live, name)
        ray_dir = naming.ray_temp_directory(run_dir)
        yield from _place(name, LIVE, run_dir, logs.logs_in(logs.live_directories(run_dir, ray_dir)))


def _place(
    name: str, kind: str, directory: str, found: list[LogFile], about: Mapping[str, Any] | None = None
) -> Iterable[Place]:
    job = naming.job_of_directory(name)
    if job is not None and (found or about):
        yield Place(job, kind, directory, found, about)
