"""What the coordinator says of one world, awaited beside its processes."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import ray
import ray.exceptions

from eray._core.missing import name_missing
from eray._core.phase import Phase
from eray._io import clock
from eray.errors import ClusterLostError

WAIT_S, REFRESH_S, RESTART_S = 20.0, 2.0, 0.5
TO_DO = {"joined": "join", "running": "start JAX", "left": "leave"}


class WorldNews:
    """One call to the coordinator at a time, as a reference that can be waited for beside others."""

    def __init__(self, handle: Any, world: str, generation: int, running: Callable[[int], None]) -> None:
        """``running`` is called with the generation when all processes have joined."""
        self._handle, self._world, self._generation, self._running = handle, world, generation, running
        self._summary: Mapping[str, Any] = {}
        self._ran = False
        self.ref: Any = handle.watch.remote(0, WAIT_S)

    def take(self) -> None:
        """Take the answer that has come, and ask for the next.

        Raises:
            ClusterLostError: the coordinator is gone.
        """
        try:
            answer = ray.get(self.ref)
            self._read(answer)
            self.ref = self._handle.watch.remote(int(answer["version"]), WAIT_S)
        except ray.exceptions.ActorUnavailableError:  # it restarts
            clock.sleep(RESTART_S)
            self.ref = self._handle.watch.remote(0, WAIT_S)
        except ray.exceptions.RayError as exc:
            found = f"the coordinator is gone ({type(exc).__name__})"
            raise ClusterLostError("head", found, "look at the logs of eray and Ray on the head node") from exc

    def refresh(self) -> None:
        """Ask once more, for what is known now."""
        with suppress(ray.exceptions.RayError):
            self._read(ray.get(self._handle.watch.remote(0, 0.0), timeout=REFRESH_S))

    @property
    def failure(self) -> tuple[str, int | None] | None:
        """The first cause of the world's failure, and the process to blame where it is one."""
        cause = self._summary.get("failure")
        return None if cause is None else (str(cause), (self._summary["failed"] or {}).get("process_index"))

    @property
    def awaited(self) -> str | None:
        """Who is awaited before the world runs, and to do what, as words; None once it runs."""
        if self._ran or not self._summary.get("missing"):
            return None
        missing = name_missing(self._summary["missing"], self._summary["missing_count"])
        return f"{missing} to {TO_DO[self._summary['awaited']]}"

    def _read(self, answer: Mapping[str, Any]) -> None:
        mine = (each for each in answer["worlds"] if each["name"] == self._world)
        self._summary = next((each for each in mine if each["generation"] == self._generation), {})
        if self._summary.get("phase") == Phase.RUNNING and not self._ran:
            self._ran = True
            self._running(self._generation)
