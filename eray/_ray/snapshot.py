"""Keeps the coordinator's state on disk, so that a restarted actor knows what the last one knew."""

import asyncio
import logging
import os
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from eray._core.rendezvous import State
from eray._io import clock

logger = logging.getLogger(__name__)

SHARE = 4
"""After a write the next one waits this many times as long as it took: at most a fifth of the time goes to disk."""


class Snapshot:
    """Writes the newest state when somebody waits for it. Events that come meanwhile share one write.

    An event whose sender has no answer yet is not worth a write: after a death of the actor the sender asks again.
    """

    def __init__(self, path: str | None) -> None:
        self._path = None if path is None else Path(path)
        self._newest = State()
        self._written = 0
        self._writing: asyncio.Task[None] | None = None
        self._wrote = asyncio.Event()
        self._not_before = 0.0

    def load(self) -> State | None:
        """Return the state of the last life with its epoch raised, or None where there is none that can be read."""
        if self._path is None:
            return None
        try:
            state = State.model_validate_json(self._path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValidationError) as exc:
            logger.warning("the snapshot %s cannot be read, starting empty: %s", self._path, exc)
            return None
        return state.model_copy(update={"epoch": state.epoch + 1, "version": state.version + 1})

    def write(self, state: State) -> None:
        """Replace the file at once, or remove it where that fails: an old state is worse than none."""
        self._written = state.serial
        if self._path is None:
            return
        partial = self._path.with_name(self._path.name + ".partial")
        try:
            descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
            with open(descriptor, "wb") as stream:
                stream.write(state.model_dump_json().encode())
            os.replace(partial, self._path)
        except OSError as exc:
            logger.warning("the coordinator's state cannot be kept in %s, a restart would lose it: %s", self._path, exc)
            for path in (partial, self._path):
                with suppress(OSError):
                    path.unlink(missing_ok=True)

    def offer(self, state: State) -> None:
        """Take the newest state, to be written when somebody waits for it."""
        self._newest = state
        if self._path is None:
            self._written = state.serial

    async def written(self, serial: int) -> None:
        """Return when the state of ``serial`` or a later one is on disk, or the disk has refused it."""
        while self._written < serial:
            if self._writing is None or self._writing.done():
                self._writing = asyncio.get_running_loop().create_task(self._write_newest())
            await self._wrote.wait()

    async def _write_newest(self) -> None:
        await asyncio.sleep(max(self._not_before - clock.monotonic(), 0.0))
        started = clock.monotonic()
        self.write(self._newest)
        ended = clock.monotonic()
        self._not_before = ended + SHARE * (ended - started)
        self._writing = None
        self._wrote.set()
        self._wrote = asyncio.Event()
