"""``eray timeline``: what the start of a cluster and its worlds, and each restart, spent their time on."""

import argparse
import json
import shutil
import sys
from collections.abc import Mapping

from eray._cli.shown import add_source_arguments, shown_picture, write_shown
from eray._show.timeline import timeline_json, timeline_text
from eray._show.trace import trace
from eray.errors import UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_source_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="also write a trace for https://ui.perfetto.dev or chrome://tracing (`-`: print it instead)",
    )


def run(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    """Print the summary, and write the trace.

    Raises:
        UsageError: the options contradict each other, or a file cannot be read or written.
        RayAttachError: there is no cluster to look at.
    """
    if args.json and args.output == "-":
        raise UsageError("--json and -o - would both print JSON: give one of them, or -o a file")
    picture = shown_picture(args, environ)
    if args.output is not None:
        write_shown(args.output, json.dumps(trace(picture), separators=(",", ":")) + "\n")
    if args.output == "-":
        return 0
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    print(json.dumps(timeline_json(picture), indent=1) if args.json else timeline_text(picture, width))
    if args.output is not None:
        print(f"eray: {args.output}: open it in https://ui.perfetto.dev or chrome://tracing", file=sys.stderr)
    return 0
