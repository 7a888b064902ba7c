"""The option ``--job``, and the cluster that it means."""

import argparse

from eray._bringup import Site
from eray._clusters import token_of
from eray._core.access import Access
from eray._starting import find_started
from eray.errors import RayAttachError


def add_job_argument(parser: argparse.ArgumentParser) -> None:
    """Declare ``--job``."""
    parser.add_argument(
        "--job", metavar="ID", help="the Slurm job of the cluster (default: this one, else `eray up` on this machine)"
    )


def dashboard_of(site: Site, wanted: str | None) -> tuple[Access, str | None]:
    """Return the cluster that takes Ray Jobs, and its token, when it is up.

    Raises:
        RayAttachError: there is none, or it takes no Ray Jobs.
        ClusterLostError: nothing answers there any more.
        SecretError: its token is not to be had here.
    """
    access = find_started(site, wanted, _dashboard)
    return access, token_of(site, access)


def _dashboard(access: Access) -> str:
    if access.dashboard is None:  # also what an earlier `eray run` of the job left, while `eray up` starts
        raise RayAttachError(
            access.node,
            f"{access} has no dashboard, which takes Ray Jobs",
            "`eray up` has one; elsewhere set ERAY_DASHBOARD=1 where the cluster is started",
        )
    return access.dashboard
