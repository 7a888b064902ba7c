"""``eray report``: one page of a cluster, to be opened in any browser, kept, or sent."""

import argparse
import sys
from collections.abc import Mapping
from datetime import datetime
from importlib import resources
from typing import TYPE_CHECKING

from eray.errors import UsageError

if TYPE_CHECKING:
    from eray._core.picture import Picture


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("-o", "--output", metavar="FILE", required=True, help="the HTML file to write; - for stdout")
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--job", metavar="ID", help="the Slurm job of the cluster (default: this one, else the last)")
    source.add_argument(
        "--from", dest="saved", metavar="FILE", help="a picture saved by `eray status --json`; - for stdin"
    )


def run(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    """Write the page of a cluster.

    Raises:
        UsageError: the picture of ``--from`` cannot be read, or the page cannot be written.
        RayAttachError: there is no such cluster.
    """
    from eray._io.output import write_output
    from eray._show.report import FILES, render

    picture = _look(args.job, environ) if args.saved is None else read_picture(args.saved)
    package = resources.files("eray._show")
    files = {name: package.joinpath(name).read_text("utf-8") for name in FILES}
    zone = datetime.fromtimestamp(0).astimezone().tzinfo
    page = render(picture, files, zone) if zone else render(picture, files)
    if args.output == "-":
        sys.stdout.buffer.write(page.encode())
        return 0
    try:
        write_output(args.output, page.encode())
    except OSError as exc:
        raise UsageError(
            f"-o {args.output}: cannot be written ({exc.strerror or exc}); name a file in a directory of yours"
        ) from exc
    return 0


def _look(job: str | None, environ: Mapping[str, str]) -> "Picture":
    from eray._identity import read_site
    from eray._look import Window

    window = Window(read_site(environ), job)
    try:
        return window.picture()
    finally:
        window.close()


def read_picture(path: str) -> "Picture":
    """Read a picture as ``eray status --json`` prints it; ``-`` is stdin.

    Raises:
        UsageError: it cannot be read, or is no picture.
    """
    from pydantic import ValidationError

    from eray._core.picture import Picture

    try:
        if path == "-":
            text = sys.stdin.buffer.read()
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
