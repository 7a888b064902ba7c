"""The mark of `eray run` and `eray up` in the job directory: it tells who looks of a start that has no head yet."""

import os
import socket
import threading
from contextlib import suppress
from types import TracebackType
from typing import Self

from eray._core import naming
from eray._core.access import START
from eray._io import clock, files, process
from eray._io.patience import answers
from eray._settings import Settings
from eray._slurm.environment import Job
from eray.errors import DirectoryError

HOME_S = 2.0
"""How long the home may take to forget it; the start never waits for the home."""


class StartMark:
    """Stands in the job directory while it is entered, until the head that starts takes it away."""

    def __init__(self, purpose: str, job: Job, settings: Settings) -> None:
        self._state_dir = os.path.abspath(os.path.expanduser(settings.state_dir))
        directory = naming.job_directory(self._state_dir, job.cluster, job.id)
        self._path = os.path.join(directory, naming.job_file(START, job.id))
        self._writing = threading.Thread(target=self._write, daemon=True)
        self._about = {
            "key": job.id,
            "job": job.id,
            "cluster": job.cluster,
            "restart": job.restart,
            "purpose": purpose,
            "began_at": clock.unix(),
            "node": socket.gethostname(),
            "pid": os.getpid(),
            "started": process.start_time(os.getpid()),
            "timeout_s": settings.cluster_timeout_s,
        }

    def __enter__(self) -> Self:
        self._writing.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writing.join(HOME_S)
        if not self._writing.is_alive():
            answers({self._path: self._remove}, HOME_S)

    def _write(self) -> None:
        with suppress(DirectoryError):  # who looks is the worse for it, and nobody else
            files.private_directory(os.path.dirname(self._path), os.path.dirname(self._state_dir))
            files.write_private_json(self._path, self._about)

    def _remove(self) -> None:
        about = files.read_json(self._path)
        if about is not None and about.get("pid") == self._about["pid"]:
            files.remove(self._path)
