"""The options ``--job``, ``--from`` and ``-o`` of commands that show a cluster, and what they mean."""

import argparse
import sys
from collections.abc import Mapping
from contextlib import closing
from typing import TYPE_CHECKING

from eray.errors import UsageError

if TYPE_CHECKING:
    from eray._core.picture import Picture


def add_shown_job(parser: "argparse._ActionsContainer") -> None:
    """Declare ``--job``."""
    parser.add_argument(
        "--job", metavar="ID", help="the Slurm job of the cluster (default: this one, else this machine alone)"
    )


def add_source_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare ``--job`` and ``--from``."""
    source = parser.add_mutually_exclusive_group()
    add_shown_job(source)
    source.add_argument(
        "--from", dest="saved", metavar="FILE", help="a picture saved by `eray status --json`; - for stdin"
    )


def shown_picture(args: argparse.Namespace, environ: Mapping[str, str]) -> "Picture":
    """Return the picture that the options mean.

    Raises:
        UsageError: the one of ``--from`` cannot be read, or is none.
        RayAttachError: there is no such cluster.
    """
    return _look(args.job, environ) if args.saved is None else read_picture(args.saved)


def _look(job: str | None, environ: Mapping[str, str]) -> "Picture":
    from eray._identity import read_site
    from eray._look import Window

    with closing(Window(read_site(environ), job)) as window:
        return window.picture()


def read_picture(path: str) -> "Picture":
    """Read a picture as ``eray status --json`` prints it; ``-`` is stdin.

    Raises:
        UsageError: it cannot be read, or is no picture.
    """
    from pydantic import ValidationError

    from eray._core.picture import Picture

    try:
        if path == "-":
            text = sys.stdin.read().encode()
        else:
            with open(path, "rb") as stream:
                text = stream.read()
    except OSError as exc:
        raise UsageError(f"--from {path}: cannot be read ({exc.strerror or exc})") from exc
    try:
        return Picture.model_validate_json(text)
    except ValidationError as exc:
        first = exc.errors()[0]
        where = ".".join(map(str, first["loc"]))
        reason = f"{where}: {first['msg']}" if where else first["msg"]
        raise UsageError(
            f"--from {path}: is no picture of a cluster ({reason}); save one by `eray status --json`"
        ) from exc


def write_shown(path: str, text: str) -> None:
    """Write what ``-o`` asks for; ``-`` is stdout.

    Raises:
        UsageError: it cannot be written.
    """
    from eray._io.output import write_output

    if path == "-":
        sys.stdout.write(text)
        return
    try:
        write_output(path, text)
    except OSError as exc:
        raise UsageError(
            f"-o {path}: cannot be written ({exc.strerror or exc}); name a file in a directory of yours"
        ) from exc
