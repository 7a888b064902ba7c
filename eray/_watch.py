"""Hears how a process's world fares, where no supervisor tells it: on a Ray that eray did not start, or in an actor."""

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from eray.errors import ConnectionStateError, ErayError

if TYPE_CHECKING:
    from eray._ray.client import CoordinatorClient


class Watcher:
    """Follows one process's world by one call in 30 s, in a thread that ends with the calls of its client.

    Give it a client of its own with a ``StoppableCall``, and stop that before Ray is shut down.
    """

    def __init__(
        self,
        client: "CoordinatorClient",
        world: str,
        generation: int,
        process_index: int,
        *,
        on_failed: Callable[[str, int], None],
        on_preemption: Callable[[str], None],
        on_quiet: Callable[[], None],
    ) -> None:
        """Begin: ``on_failed`` gets the cause and an exit code, at the end, and ``on_preemption`` the reason, once.

        ``on_quiet`` is called where there was nothing new for a while.
        A world has also failed for a process of an earlier generation, and where the coordinator is gone.
        """
        self._client = client
        self._place = (world, generation, process_index)
        self._on_failed, self._on_preemption, self._on_quiet = on_failed, on_preemption, on_quiet
        threading.Thread(target=self._follow, name="eray-follow", daemon=True).start()

    def _follow(self) -> None:
        warned = False
        while True:
            try:
                reason = self._client.follow(*self._place, warned=warned)
                if reason is None:
                    self._on_quiet()
            except ConnectionStateError:
                return
            except ErayError as exc:
                self._on_failed(str(exc), exc.exit_code)
                return
            if reason is not None and not warned:
                warned = True
                self._on_preemption(reason)
