"""``eray plan``: what eray makes of an environment. Starts nothing."""

import argparse
import json
import re
import socket
import sys
from collections.abc import Mapping

from eray._slurm.hostlist import fold_hostlist
from eray._slurm.plan import Plan, make_plan
from eray.errors import UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``eray plan``."""
    parser.add_argument(
        "--environ",
        metavar="FILE",
        action="append",
        default=[],
        help="plan for a captured environment of KEY=VALUE lines instead of this one; once for each task",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    """Print the plan; 0 without problems, 3 with.

    Raises:
        UsageError: a file of ``--environ`` cannot be read.
    """
    captured = [read_environ_file(path) for path in args.environ]
    plan = make_plan(captured) if captured else make_plan([environ], host=socket.gethostname())
    print(json.dumps(plan.to_json(), indent=2) if args.json else _as_text(plan))
    for notice in plan.notices:
        print(f"eray: note: {notice}", file=sys.stderr)
    return 3 if plan.problems else 0


def read_environ_file(path: str) -> dict[str, str]:
    """Read ``KEY=VALUE`` lines, as ``env`` prints them; blank lines and ``#`` comments count for nothing.

    Raises:
        UsageError: the file cannot be read, or a line has no ``=``.
    """
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            lines = file.read().splitlines()
    except OSError as error:
        raise UsageError(f"--environ {path}: {error.strerror or error}") from error
    environ: dict[str, str] = {}
    function = ""  # env prints an exported bash function over several lines
    for number, line in enumerate(lines, start=1):
        if function and not re.match(r"[A-Za-z_][A-Za-z0-9_%]*=", line):
            environ[function] += f"\n{line}"
            continue
        if not line.strip() or line.startswith("#"):
            continue
        name, equals, value = line.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"--environ {path}: line {number} is not KEY=VALUE: {line[:80]!r}")
        environ[name] = value
        function = name if value.startswith("() {") else ""
    return environ


def _as_text(plan: Plan) -> str:
    rows = [("environment", str(plan.environment))]
    if plan.job:
        step = f", step {plan.job.step}" if plan.job.step is not None else ""
        restart = f", restart {plan.job.restart}" if plan.job.restart else ""
        rows.append(("job", f"{plan.job.id}{step}{restart}"))
    if plan.key:
        rows.append(("cluster key", plan.key))
    if plan.ports:
        rows.append(("beacon ports", " ".join(str(port) for port in plan.ports)))
    rows.append(("nodes", f"{len(plan.nodes)}: {fold_hostlist(plan.nodes)}" if plan.nodes else "unknown"))
    if plan.head:
        rows.append(("head", plan.head))
    if plan.process_count is not None:
        rows.append(("processes", f"{plan.process_count}, {len(plan.processes)} shown"))
    lines = [f"{name:<13} {value}" for name, value in rows]
    if plan.processes:
        lines += ["", *_table(plan)]
    lines += ["", *(f"problem: {problem.code}: {problem.message}" for problem in plan.problems)]
    return "\n".join(lines if plan.problems else lines[:-1])


def _table(plan: Plan) -> list[str]:
    rows = [("process", "node", "local", "visible", "device ids", "rule")]
    for one in plan.processes:
        visible = "unset" if one.visible is None else ",".join(one.visible) or "none"
        ids = "-" if one.local_device_ids is None else ",".join(str(ordinal) for ordinal in one.local_device_ids)
        local = f"{one.local_index} of {one.local_count}"
        rows.append((str(one.process_index), one.node, local, visible, ids, one.device_rule or "undecided"))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
