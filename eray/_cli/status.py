"""``eray status``: how a cluster is, while it runs and afterwards."""

import argparse
import json
import shutil
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import tzinfo
from functools import partial
from typing import Any

from eray._cli.shown import add_shown_job
from eray._cli.terminal import is_rich
from eray._core.picture import Picture
from eray._core.sights import TIMEOUTS
from eray._identity import read_site
from eray._io import clock
from eray._io.signals import Caught
from eray._ray.notices import say
from eray._show.status import StatusView, status_text
from eray._show.waits import is_late, is_long, is_silent, waits_of
from eray.errors import ErayError, RayAttachError

PAUSE_S = 1.0
Show = Callable[[Picture], None]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_shown_job(parser)
    parser.add_argument(
        "--watch", action="store_true", help="go on until the cluster ends; wait for that of a queued job"
    )
    parser.add_argument("--json", action="store_true", help="print JSON, one line a picture")


def run(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    """Show the cluster; 0 where there is one, also one that ended.

    Raises:
        RayAttachError: there is none, and none is awaited.
        UsageError: there are several.
    """
    from eray._look import Window

    with closing(Window(read_site(environ), args.job)) as window:
        if not args.watch:
            with screen(environ, args.json, live=False) as show:
                show(window.picture())
            return 0
        with unwound(), screen(environ, args.json, live=True) as show:
            watch(window.picture, window.awaited, show, partial(clock.sleep, PAUSE_S))
    return 0


def watch(
    look: Callable[[], Picture],
    awaited: Callable[[ErayError], str | None],
    show: Show,
    pause: Callable[[], None],
) -> None:
    """Show each picture until the cluster has ended, and its job does not start again.

    Whoever watches may have begun together with a start that is not seen yet: a cluster that has ended, or none, is
    believed at the second look only. ``awaited`` tells for what it waits where there is no cluster.

    Raises:
        ErayError: as ``look`` does, where nothing is awaited.
    """
    is_first, told = True, None
    while True:
        try:
            picture = look()
        except ErayError as exc:
            waits_for = awaited(exc)
            if waits_for is None and not (is_first and isinstance(exc, RayAttachError)):
                raise
            if waits_for not in (None, told):
                say(f"{waits_for}; waiting for it")
                told = waits_for
        else:
            is_over = picture.phase == "ended" and picture.queued is None
            if not (is_over and is_first):
                show(picture)
                if is_over:
                    return
        is_first = False
        pause()


@contextmanager
def unwound() -> Iterator[None]:
    """Let signals that would end this process at once leave the body instead, as Ctrl-C does: the cursor comes back."""
    caught = Caught(lambda number: sys.exit(128 + number))
    caught.catch((signal.SIGTERM, signal.SIGHUP))
    try:
        yield
    finally:
        caught.restore()


@contextmanager
def screen(environ: Mapping[str, str], as_json: bool, *, live: bool) -> Iterator[Show]:
    """Yield what shows a picture: in colours and in place on a terminal, elsewhere as text where something changed."""
    zone = clock.zone()
    if as_json:
        yield _when_changed(lambda picture: json.dumps(picture.to_json() | {"waits": waits_of(picture).to_json()}))
    elif not is_rich(environ, is_terminal=sys.stdout.isatty()):
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        yield _when_changed(lambda picture: status_text(picture, width=width, zone=zone), between="\n")
    else:
        with _terminal(zone, live) as show:
            yield show


def essence(picture: Picture) -> Any:
    """Return what of a picture makes a new one worth showing: times that only go on do not."""
    waits = waits_of(picture)
    nodes = [(view.node_rank, view.state, view.reason) for view in picture.nodes]
    missing = [[(each.process_index, each.state, each.doing) for each in wait.missing] for wait in waits.worlds]
    long = [*map(is_long, waits.nodes), *map(is_long, waits.worlds)]
    lengths = [*(wait.for_s for wait in waits.nodes), *(wait.for_s for wait in waits.worlds)]
    late = [is_late(picture, variable, for_s) for for_s in lengths for variable in TIMEOUTS]
    worlds = picture.topology.worlds if picture.topology is not None else ()
    silent = [is_silent(picture, world) for world in worlds]
    ending = picture.ending, picture.queued
    return picture.phase, ending, picture.topology, nodes, missing, long, late, silent


def _when_changed(text_of: Callable[[Picture], str], between: str = "") -> Show:
    last: list[Any] = []

    def show(picture: Picture) -> None:
        now = essence(picture)
        if last != [now]:
            print((between if last else "") + text_of(picture), flush=True)
            last[:] = [now]

    return show


@contextmanager
def _terminal(zone: tzinfo, live: bool) -> Iterator[Show]:
    from rich.console import Console
    from rich.live import Live

    console = Console(file=sys.stdout, force_terminal=True, highlight=False, markup=False, emoji=False)
    if not live:
        yield lambda picture: console.print(StatusView(picture, zone))
        return
    with Live(console=console, auto_refresh=False, redirect_stderr=False) as display:
        yield lambda picture: display.update(StatusView(picture, zone, console.height - 1), refresh=True)
