"""``eray report``: one page of a cluster, to be opened in any browser, kept, or sent."""

import argparse
from collections.abc import Mapping
from importlib import resources

from eray._cli.shown import add_source_arguments, shown_picture, write_shown
from eray._io import clock


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("-o", "--output", metavar="FILE", required=True, help="the HTML file to write; - for stdout")
    add_source_arguments(parser)


def run(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    """Write the page of a cluster.

    Raises:
        UsageError: the picture of ``--from`` cannot be read, or the page cannot be written.
        RayAttachError: there is no such cluster.
    """
    from eray._show.report import FILES, render

    picture = shown_picture(args, environ)
    package = resources.files("eray._show")
    files = {name: package.joinpath(name).read_text("utf-8") for name in FILES}
    write_shown(args.output, render(picture, files, clock.zone()))
    return 0
