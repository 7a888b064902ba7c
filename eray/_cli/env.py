"""``eray env``: what a shell needs to reach a cluster with Ray's own commands."""

import argparse
from collections.abc import Mapping

from eray._cli.job_access import add_job_argument
from eray._clusters import token_of
from eray._identity import read_site
from eray._ray.commands import export_lines
from eray._starting import find_started


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_job_argument(parser)


def run(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    """Print lines for ``( eval "$(eray env)"; ray … )``. Off the cluster's nodes they hold the token."""
    site = read_site(environ)
    access = find_started(site, args.job, lambda access: access.gcs_address)
    token = token_of(site, access)
    for line in export_lines(access.gcs_address, access.dashboard, access.auth, access.token_path, token):
        print(line)
    return 0
