"""``eray node``: one supervisor. ``connect()`` starts it; it reads its NodeSpec from standard input."""

import argparse
import json
import os
import sys
from collections.abc import Mapping, MutableMapping

from eray._bringup import ray_environment
from eray._core.nodespec import NodeSpec
from eray.errors import ErayError, UsageError, error_data


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    del parser


def run(args: argparse.Namespace, environ: MutableMapping[str, str]) -> int:
    """Serve the node. The first line on standard output says that it listens, or why it cannot; then that is closed."""
    del args
    text = sys.stdin.read()
    if not text.strip():
        raise UsageError("`eray node` is started by eray itself; you want `eray run` or `eray up`")
    from eray._cli.live import show_start
    from eray._ray.node import supervise

    show_start(environ)
    spec = NodeSpec.from_json(text)
    try:
        code = supervise(spec, environ, ray_environment(environ), listening=lambda: _answer({"listening": True}))
    except ErayError as exc:
        _answer({"error": error_data(exc)})  # unheard where it listened before
        code = exc.exit_code
    sys.stderr.flush()
    os._exit(code)


def _answer(message: Mapping[str, object]) -> None:
    try:
        os.write(1, json.dumps(message).encode() + b"\n")
    except OSError:
        return
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.close(nothing)
