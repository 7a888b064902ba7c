"""``eray plan``: what eray makes of an environment. Starts nothing."""

import argparse
import json
import re
import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace

from eray._core.division import VARIABLE, check_division
from eray._settings import Settings
from eray._show.planned import HEADINGS, UNKNOWN, planned_rows
from eray._show.wording import table
from eray._slurm.allocation import read_allocation, tasks_per_node
from eray._slurm.environment import SHELLS, Mode
from eray._slurm.hostlist import fold_hostlist
from eray._slurm.membership import misspellings
from eray._slurm.plan import SETTING, Plan, Problem, make_plan, problem_of
from eray._slurm.variables import PROCID
from eray.errors import ConfigurationError, UsageError


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
    for line in dict.fromkeys(line for each in captured for line in misspellings(each)):
        print(f"eray: note: {line}", file=sys.stderr)
    plan = make_plan(captured) if captured else make_plan([environ], host=socket.gethostname())
    starts: list[str] = []
    if plan.environment in SHELLS and plan.nodes and not plan.problems:
        starts, problems = _starts(captured[0] if captured else environ)
        plan = replace(plan, problems=problems)
    is_first = bool(captured) or environ.get(PROCID, "0") == "0" or plan.environment is not Mode.STEP
    if args.json:
        print(json.dumps(plan.to_json(), indent=2))
    elif is_first:
        print("\n".join(_as_text(plan, starts)))
    elif lines := _own_lines(plan):
        print("\n".join(lines))
    for notice in plan.notices if is_first else ():
        print(f"eray: note: {notice}", file=sys.stderr)
    return 3 if plan.problems else 0


def _starts(environ: Mapping[str, str]) -> tuple[list[str], tuple[Problem, ...]]:
    """Return what `eray run` and `srun` would start over the allocation around, and what is wrong with the former."""
    settings = Settings.from_environ(environ)
    try:
        allocation = read_allocation(environ)
        nodes, there = allocation.nodes, allocation.known_gpus
        tasks = tasks_per_node(environ, allocation)
    except ConfigurationError as error:
        return [], (problem_of(error),)
    each, override = settings.devices_per_process or None, settings.devices
    rows = [("eray run", *row) for row in planned_rows(nodes, (1,) * len(nodes), there, each, override)]
    rows += [("srun", *row) for row in planned_rows(nodes, tasks, there, None, override)] if tasks else []
    lines = table([("started by", *HEADINGS), *rows])
    unknown = f"what other options of eray run (`eray run --dry-run …`) and srun ask for, {UNKNOWN}"
    try:
        if override is None:
            check_division(nodes[0], there, 1, each, VARIABLE)
    except ConfigurationError as error:
        return [*lines, f"not known here: {unknown}"], (problem_of(error),)
    return [*lines, f"not known here: {unknown}"], ()


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


def _as_text(plan: Plan, starts: Sequence[str]) -> list[str]:
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
        shown = len(plan.processes)
        rows.append(("processes", f"{plan.process_count}{f', {shown} shown' if shown < plan.process_count else ''}"))
    lines = [f"{name:<13} {value}" for name, value in rows]
    if plan.processes or starts:
        lines += ["", *(_table(plan) if plan.processes else starts)]
    return [*lines, *([""] if plan.problems else []), *_problems(plan)]


def _own_lines(plan: Plan) -> list[str]:
    """Return what a task says that is not the first: of the shared part, and of settings, that one tells."""
    return [*_table(plan)[1:], *_problems(replace(plan, problems=tuple(p for p in plan.problems if p.code != SETTING)))]


def _problems(plan: Plan) -> list[str]:
    return [f"problem: {problem.code}: {problem.message}" for problem in plan.problems]


def _table(plan: Plan) -> list[str]:
    rows = [("process", "node", "local", "visible", "device ids", "rule")]
    for one in plan.processes:
        visible = "unset" if one.visible is None else ",".join(one.visible) or "none"
        ids = "-" if one.local_device_ids is None else ",".join(str(ordinal) for ordinal in one.local_device_ids)
        local = f"{one.local_index} of {one.local_count}"
        rows.append((str(one.process_index), one.node, local, visible, ids, one.device_rule or "undecided"))
    return table(rows)
