"""What goes on beside a connected program, in threads, until its connection is closed."""

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from eray._asking import Asking
from eray._core.membership import Membership
from eray._core.tracks import Recorder
from eray._io.link import Link
from eray._preemption import AGREE_S, Preemption
from eray._ray.noted import tell_notes
from eray._watch import Watcher
from eray.errors import ErayError

if TYPE_CHECKING:
    from eray._ray.client import CoordinatorClient


def serve_beside(
    membership: Membership,
    link: Link | None,
    asking: Asking,
    request: Mapping[str, Any],
    preemption: Preemption,
    spans: Recorder,
    on_failed: Callable[[str, int], None],
) -> "CoordinatorClient":
    """Begin to tell warnings and to settle the step to save at; without a ``link`` also to follow the world.

    ``request`` is that by which it joined, ``spans`` what its start was spent on, which is told. It ends with
    ``preemption.close()``. Returned is who asks meanwhile.
    """
    client, place = asking.beside, membership.place

    def tell(what: str) -> None:
        reason = f"{what} at {membership.name}"
        if link is None:
            client.warn(reason)
        else:
            link.send({"type": "warned", "reason": reason})

    preemption.serve(
        tell=tell,
        agree=lambda step: client.agree_to_save(*place, step, timeout_s=AGREE_S),
        stop=asking.calls.stop,
    )
    if link is not None:
        tell_notes(link, spans, *place)
    else:
        from eray._ray.actor_watch import watch_own_actor

        threading.Thread(target=_note, args=(client, membership, spans), name="eray-note", daemon=True).start()
        Watcher(
            client,
            *place,
            on_failed=on_failed,
            on_preemption=preemption.take,
            on_quiet=lambda: watch_own_actor(client.handle, request, asking.calls),
        )
    return client


def _note(client: "CoordinatorClient", about: Membership, spans: Recorder) -> None:
    track = about.ids | {"node_rank": about.node["node_rank"], "spans": spans.rows()}
    with suppress(ErayError):  # it has left meanwhile
        client.note(track, spans.now())
