"""``eray jobs``: list or stop the Ray Jobs of one cluster."""

import argparse
import asyncio
import json
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING

from eray._cli.job_access import add_job_argument, dashboard_of
from eray._core.access import Access
from eray._core.timing import Backoff, Deadline
from eray._identity import read_site
from eray._io import clock
from eray.errors import ClusterLostError

if TYPE_CHECKING:
    from eray._ray.jobs import Job

STOP_S = 15.0
PAUSES = Backoff(first_s=0.1)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions and their options."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="list|stop")
    for name, meaning in {"list": "show the Ray Jobs, the oldest first", "stop": "stop them and see them end"}.items():
        action = actions.add_parser(name, help=meaning, description=meaning)
        add_job_argument(action)
        action.add_argument("--json", action="store_true", help="print JSON")
        if name == "stop":
            action.add_argument(
                "ids", nargs="+", metavar="RAY_JOB", help="as `eray submit` and `eray jobs list` show it"
            )


def run(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    """Print the jobs, after stopping them where that is asked."""
    access, token = dashboard_of(read_site(environ), args.job)
    found = asyncio.run(_stop(access, token, args.ids) if args.action == "stop" else _list(access, token))
    if args.json:
        print(json.dumps([asdict(job) for job in found], indent=1))
        return 0
    for job in found:
        started = datetime.fromtimestamp(job.started_s).isoformat(" ", "seconds") if job.started_s else "-"
        print(f"{job.id:20} {job.status:10} {started:20} {job.command}")
    return 0


async def _list(access: Access, token: str | None) -> list["Job"]:
    from eray._ray.jobs import Jobs

    async with Jobs(access, token) as jobs:
        await jobs.check()
        return await jobs.list()


async def _stop(access: Access, token: str | None, ids: list[str]) -> list["Job"]:
    from eray._ray.jobs import Jobs

    async with Jobs(access, token) as jobs:
        await jobs.check()
        for each in ids:
            await jobs.job(each)
        for each in ids:
            await jobs.stop(each)
        deadline, attempt = Deadline.after(STOP_S, now=clock.monotonic()), 0
        while True:
            found = [await jobs.job(each) for each in ids]
            if all(job.has_ended for job in found):
                return found
            if deadline.is_over(clock.monotonic()):
                left = ", ".join(job.id for job in found if not job.has_ended)
                raise ClusterLostError(access.node, f"Ray did not end {left} within {STOP_S:g} s", "see its logs")
            await asyncio.sleep(PAUSES.pause_s(attempt, deadline, clock.monotonic()))
            attempt += 1
