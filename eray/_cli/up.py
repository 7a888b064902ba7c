"""``eray up``: a cluster over the allocation, in the foreground until a signal."""

import argparse
from collections.abc import MutableMapping

from eray._bringup import Site, local_spec, step_spec
from eray._cli.run import serve
from eray._cli.step import add_step_arguments, run_step, step_of
from eray._settings import Settings
from eray._slurm.environment import SHELLS, Mode, read_environment
from eray._slurm.membership import foreign_error
from eray.errors import UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--dry-run", action="store_true", help="print what would be started")
    add_step_arguments(parser)


def run(args: argparse.Namespace, environ: MutableMapping[str, str]) -> int:
    """Keep a cluster up until SIGINT or SIGTERM; return 128 plus the signal's number."""
    settings, slurm = Settings.from_environ(environ), read_environment(environ)
    if slurm.mode in SHELLS:
        return run_step("up", [], environ, dry_run=args.dry_run, no_kill=True)
    if slurm.mode is Mode.FOREIGN_LAUNCHER:
        raise foreign_error(slurm)
    if slurm.mode is Mode.RAY_WORKER:
        raise UsageError("`eray up` inside a Ray worker or job driver would start a Ray within Ray")
    site = Site(environ, settings, slurm)
    if slurm.mode is Mode.STEP:
        step_of(slurm, "eray up")
        spec = step_spec(site, "up")
    else:
        spec = local_spec(site, "up")
    if args.dry_run:
        print(f"a Ray node on {spec.node}, head {spec.nodes[0]}, key {spec.key}")
        return 0
    return serve(spec, environ, led=args.led)
