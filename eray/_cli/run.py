"""``eray run``: one line that starts Ray and the processes of a world on every node of the allocation."""

import argparse
import os
import shlex
import sys
from collections.abc import MutableMapping, Sequence
from functools import partial

from eray._bringup import Site, local_spec, ray_environment, step_spec
from eray._cli.counts import whole_number
from eray._cli.program import program_of
from eray._cli.step import add_step_arguments, run_step, step_of
from eray._core.division import OPTION, VARIABLE, check_division
from eray._core.lives import Rule
from eray._core.nodespec import NodeSpec, WorldSpec
from eray._identity import WORLD
from eray._settings import Settings
from eray._show.planned import HEADINGS, UNKNOWN, planned_rows
from eray._show.wording import table
from eray._slurm.allocation import read_allocation
from eray._slurm.environment import SHELLS, Mode, SlurmEnvironment, read_environment
from eray._slurm.membership import foreign_error
from eray.errors import DevicePlanError, UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("-n", "--processes", type=whole_number, metavar="N", help="processes in all")
    parser.add_argument(
        "--processes-per-node", type=whole_number, metavar="K", help="processes on each node (default: 1)"
    )
    parser.add_argument(
        "--devices-per-process",
        type=whole_number,
        metavar="D",
        help="devices of one process, not of the node: K processes need K times D GPUs there; on CPUs JAX makes D",
    )
    parser.add_argument(
        "--max-restarts",
        type=partial(whole_number, least=0),
        default=0,
        metavar="R",
        help="start the world again after a failure, R times",
    )
    parser.add_argument(
        "--min-nodes",
        type=whole_number,
        metavar="M",
        help="nodes that a restart needs (default: 1); needs --max-restarts",
    )
    parser.add_argument("--dry-run", action="store_true", help="print what would be started")
    add_step_arguments(parser)
    parser.add_argument("words", nargs=argparse.REMAINDER, metavar="-- CMD …", help="the program of each process")


def run(args: argparse.Namespace, environ: MutableMapping[str, str]) -> int:
    """Run the program and return the code of the first process that ended badly, else 0."""
    command = program_of(args.words, "eray run -n 4 -- python train.py")
    if args.processes is not None and args.processes_per_node is not None:
        raise UsageError("-n and --processes-per-node cannot both be given: one follows from the other and the nodes")
    if args.min_nodes is not None and not args.max_restarts:
        raise UsageError("--min-nodes tells on how few nodes the world may be started again; give --max-restarts too")
    settings, slurm = Settings.from_environ(environ), read_environment(environ)
    if slurm.mode in SHELLS:
        return _start_step(args, command, settings, environ)
    site = Site(environ, settings, slurm)
    if slurm.mode is Mode.STEP:
        step_of(slurm, "eray run")
        assert slurm.task is not None
        _check_min_nodes(args.min_nodes, len(slurm.task.nodes), "start the step on more (srun -N)")
        spec = step_spec(site, "run", _world(args, command, len(slurm.task.nodes), settings))
    else:
        _require_local(slurm)
        _check_min_nodes(args.min_nodes, 1, "start this in a Slurm allocation of several")
        spec = local_spec(site, "run", _world(args, command, 1, settings))
    there = len(spec.visible) if spec.visible is not None else spec.gpus_on_node or spec.hardware_count or 0
    asked = _Asked(args, settings)
    assert spec.world is not None
    if args.dry_run and spec.node_rank == 0:
        print("\n".join(asked.table(spec.nodes, spec.world.per_node, there)))
        print(f"each process: {shlex.join(command)}")
    if args.dry_run or asked.each is not None:
        try:
            asked.check((spec.node,), (spec.world.per_node[spec.node_rank],), there)
        except DevicePlanError as exc:
            if not args.dry_run:
                _tell_others(spec, exc)
            raise
    if args.dry_run:
        return 0
    return serve(spec, environ, led=args.led)


def _start_step(
    args: argparse.Namespace, command: list[str], settings: Settings, environ: MutableMapping[str, str]
) -> int:
    """Start one step over the allocation, of which the batch script knows the number of GPUs."""
    allocation = read_allocation(environ)
    nodes, there = allocation.nodes, allocation.known_gpus
    _check_min_nodes(args.min_nodes, len(nodes), "ask Slurm for more (--nodes)")
    per_node, asked = _per_node(args, len(nodes)), _Asked(args, settings)
    if args.dry_run:
        print("\n".join([*asked.table(nodes, per_node, there), f"not known here: {UNKNOWN}"]))
    if args.dry_run or asked.each is not None:
        asked.check(nodes, per_node, there)
    words, may_restart = _options(args, command), args.max_restarts > 0
    return run_step("run", words, environ, dry_run=args.dry_run, no_kill=may_restart)


class _Asked:
    """How many devices a process is to have, and by what the user said so."""

    def __init__(self, args: argparse.Namespace, settings: Settings) -> None:
        self.each = args.devices_per_process or settings.devices_per_process or None
        self._option = OPTION if args.devices_per_process is not None else VARIABLE
        self._override = settings.devices

    def table(self, nodes: Sequence[str], per_node: Sequence[int], there: int | None) -> list[str]:
        """Return what would be started on each node."""
        return table([HEADINGS, *planned_rows(nodes, per_node, there, self.each, self._override)])

    def check(self, nodes: Sequence[str], per_node: Sequence[int], there: int | None) -> None:
        """Refuse what the nodes' devices cannot give, unless ERAY_DEVICES decides."""
        for node, count in zip(nodes, per_node, strict=True):
            if self._override is None:
                check_division(node, there, count, self.each, self._option)


def _tell_others(spec: NodeSpec, error: DevicePlanError) -> None:
    from eray._ray.refusal import tell_others

    tell_others(spec, error)


def serve(spec: NodeSpec, environ: MutableMapping[str, str], *, led: bool) -> int:
    """Serve a node until its cluster ends; does not return to Python's own exit, where Ray would wait for the dead."""
    from eray._cli.live import show_start
    from eray._ray.node import supervise

    show_start(environ)
    code = supervise(spec, environ, ray_environment(environ), led=led)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _world(args: argparse.Namespace, command: list[str], node_count: int, settings: Settings) -> WorldSpec:
    rule = Rule(args.max_restarts, args.min_nodes or 1, settings.healthy_s)
    return WorldSpec(WORLD, tuple(command), _per_node(args, node_count), _Asked(args, settings).each, rule)


def _per_node(args: argparse.Namespace, node_count: int) -> tuple[int, ...]:
    if args.processes is None:
        return (args.processes_per_node or 1,) * node_count
    each, more = divmod(args.processes, node_count)
    return tuple(each + (rank < more) for rank in range(node_count))


def _check_min_nodes(wanted: int | None, found: int, remedy: str) -> None:
    if wanted is not None and wanted > found:
        there, most = ("is only 1 node", "1") if found == 1 else (f"are only {found} nodes", f"{found} at most")
        raise UsageError(f"--min-nodes {wanted}: there {there}; give {most}, or {remedy}")


def _options(args: argparse.Namespace, command: list[str]) -> list[str]:
    named = {
        "--processes": args.processes,
        "--processes-per-node": args.processes_per_node,
        "--devices-per-process": args.devices_per_process,
        "--max-restarts": args.max_restarts or None,
        "--min-nodes": args.min_nodes,
    }
    return [f"{name}={value}" for name, value in named.items() if value is not None] + ["--", *command]


def _require_local(slurm: SlurmEnvironment) -> None:
    if slurm.mode is Mode.FOREIGN_LAUNCHER:
        raise foreign_error(slurm)
    if slurm.mode is Mode.RAY_WORKER:
        raise UsageError("`eray run` inside a Ray worker or job driver would start a Ray within Ray; use eray.launch()")
