"""``eray timeline``: what the start of a cluster and its worlds, and each restart, spent their time on."""

import argparse
import json
import sys
from collections.abc import Mapping

from eray._cli.job_access import add_job_argument
from eray._core.picture import Picture
from eray._identity import read_site
from eray._io.output import write_output
from eray._show.timeline import timeline_json, timeline_text
from eray._show.trace import trace
from eray.errors import UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_job_argument(parser)
    parser.add_argument(
        "--from", dest="source", metavar="FILE", help="a picture saved by `eray status --json` (`-` reads it here)"
    )
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
    if args.source is not None and args.job is not None:
        raise UsageError("--from and --job cannot both be given: a saved picture is of one cluster")
    if args.json and args.output == "-":
        raise UsageError("--json and -o - would both print JSON: give one of them, or -o a file")
    picture = _look(environ, args.job) if args.source is None else read_picture(args.source)
    if args.output == "-":
        print(_trace_text(picture))
        return 0
    if args.output is not None:
        try:
            write_output(args.output, _trace_text(picture))
        except OSError as error:
            raise UsageError(f"-o {args.output}: {error.strerror or error}") from error
    print(json.dumps(timeline_json(picture), indent=1) if args.json else timeline_text(picture))
    if args.output is not None:
        print(f"eray: {args.output}: open it in https://ui.perfetto.dev or chrome://tracing", file=sys.stderr)
    return 0


def read_picture(path: str) -> Picture:
    """Return the picture that ``eray status --json`` printed into a file; ``-`` is standard input.

    Raises:
        UsageError: the file cannot be read, or is no picture.
    """
    try:
        if path == "-":
            text = sys.stdin.read()
        else:
            with open(path, encoding="utf-8") as file:
                text = file.read()
        return Picture.model_validate_json(text)
    except OSError as error:
        raise UsageError(f"--from {path}: {error.strerror or error}") from error
    except ValueError as error:  # of pydantic too
        first = str(error).partition(", input_value")[0].replace("\n", " ")[:200]
        raise UsageError(f"--from {path}: not what `eray status --json` prints: {first}") from error


def _look(environ: Mapping[str, str], job: str | None) -> Picture:
    from eray._look import Window

    window = Window(read_site(environ), job)
    try:
        return window.picture()
    finally:
        window.close()


def _trace_text(picture: Picture) -> str:
    return json.dumps(trace(picture), separators=(",", ":"))
