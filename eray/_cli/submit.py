"""``eray submit``: a program as a Ray Job on a cluster that runs, with its output and exit code."""

import argparse
import asyncio
import os
import re
import secrets
import shlex
import signal
import sys
from collections.abc import MutableMapping
from typing import TYPE_CHECKING

from eray._cli.job_access import add_job_argument, dashboard_of
from eray._cli.program import program_of
from eray._core.access import Access
from eray._core.timing import Backoff
from eray._identity import read_site
from eray._io.signals import ENDING
from eray._ray.notices import say
from eray.errors import ErayError, UsageError

if TYPE_CHECKING:
    from eray._ray.jobs import Job, Jobs

STOP_S = 15.0
"""How long a stopped job may take to end: Ray kills it after three seconds."""
LOOKS = Backoff(first_s=0.2, limit_s=2.0)
"""How often it is seen whether the job still runs: Ray's stream of output begins 3 s late, and ends up to 4 s late."""
QUIET_S = 10.0
"""How long more output of a job that has ended may take to come: a dashboard whose agent hangs sends none."""
SHORT = 1_000_000
"""Characters of output of which there is no harm in having them sent twice."""
PAUSES = Backoff(first_s=0.2, limit_s=5.0)
RAYS_OWN = re.compile(r"^\S+ \S+\tINFO job_manager\.py:\d+ -- Runtime env is setting up\.\n", re.MULTILINE)
"""What Ray puts into the output of the program, beside a heading with its command."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_job_argument(parser)
    parser.add_argument("--no-wait", action="store_true", help="print the Ray Job's id and leave it running")
    parser.add_argument(
        "--working-dir", metavar="DIR", help="send a copy of this directory, and run there (default: run in this one)"
    )
    parser.add_argument("words", nargs=argparse.REMAINDER, metavar="-- CMD …", help="the program on the head node")


def run(args: argparse.Namespace, environ: MutableMapping[str, str]) -> int:
    """Run the program and return its exit code; 143 where somebody stopped it, 128 plus a signal's number for ours."""
    command = program_of(args.words, "eray submit -- python driver.py")
    if args.working_dir is not None and not os.path.isdir(args.working_dir):
        raise UsageError(f"--working-dir {args.working_dir}: is no directory")
    access, token = dashboard_of(read_site(environ), args.job)
    return asyncio.run(_Submission(access, token, command, args.working_dir, environ).run(wait=not args.no_wait))


class _Submission:
    """One job of one command: submitted, followed, and stopped when the command is."""

    def __init__(
        self,
        access: Access,
        token: str | None,
        command: list[str],
        directory: str | None,
        environ: MutableMapping[str, str],
    ) -> None:
        self._access, self._token, self._directory, self._environ = access, token, directory, environ
        self._command, self._id = shlex.join(command), f"eray-{secrets.token_hex(6)}"
        # Ray's own choice is any cluster of this machine, where it sees one only (services.py); we know better.
        here = "" if directory else f"cd {shlex.quote(os.getcwd())} && "
        self._entrypoint = f"{here}exec env RAY_ADDRESS={access.gcs_address} {self._command}"
        self._received: list[int] = []
        self._seen = 0

    async def run(self, *, wait: bool) -> int:
        from eray._ray.jobs import Jobs

        async with Jobs(self._access, self._token) as jobs:
            if not wait:
                await self._submit(jobs)
                print(self._id, flush=True)
                return 0
            return await self._attend(jobs)

    async def _attend(self, jobs: "Jobs") -> int:
        """Submit and follow the job; stop it when a signal comes or nobody reads its output any more."""
        loop, signalled, submitted = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()

        def receive(number: int) -> None:
            self._received.append(number)
            signalled.set()
            if len(self._received) > 1:
                say(f"left; Ray Job {self._id} may still run")
                os._exit(128 + number)

        for number in ENDING:
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup
                loop.add_signal_handler(number, receive, number)
        following = asyncio.create_task(self._follow(jobs, submitted))
        waiting = asyncio.create_task(signalled.wait())
        await asyncio.wait({following, waiting}, return_when=asyncio.FIRST_COMPLETED)
        if not following.done():
            say(f"{signal.Signals(self._received[0]).name}: stopping Ray Job {self._id}")
            await self._stop(jobs, following, submitted)
        waiting.cancel()
        if self._received:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
            return 128 + self._received[0]
        try:
            return self._code(following.result())
        except BrokenPipeError:
            await jobs.stop(self._id)
            raise

    async def _submit(self, jobs: "Jobs") -> None:
        if self._directory is None:
            await jobs.check()
            await jobs.submit(self._id, self._entrypoint, self._command)
        else:
            await jobs.submit_directory(self._id, self._entrypoint, self._command, self._directory, self._environ)

    async def _follow(self, jobs: "Jobs", submitted: asyncio.Event) -> "Job":
        await self._submit(jobs)
        submitted.set()
        say(f"Ray Job {self._id} runs on {self._access}")
        attempt = 0
        while True:
            seen, reading = self._seen, asyncio.create_task(self._read(jobs))
            try:
                job = await self._watch(jobs, reading)
            finally:
                reading.cancel()
            if job.has_ended:
                return job
            attempt = attempt + 1 if self._seen == seen else 0
            await asyncio.sleep(PAUSES.pause_s(attempt))

    async def _read(self, jobs: "Jobs") -> None:
        """Print the job's output as it comes; after a broken connection only what is new."""
        skip = self._seen
        async for text in jobs.output(self._id):
            new, skip = text[skip:], max(skip - len(text), 0)
            self._print(new)

    def _print(self, text: str) -> None:
        self._seen += len(text)
        heading = f"Running entrypoint for job {self._id}: {self._entrypoint}\n"
        sys.stdout.write(RAYS_OWN.sub("", text).replace(heading, "", 1))
        sys.stdout.flush()

    async def _watch(self, jobs: "Jobs", reading: "asyncio.Task[None]") -> "Job":
        """Return the job when its output ends, or when it has ended and no more output comes."""
        attempt = 0
        while not (await asyncio.wait({reading}, timeout=LOOKS.pause_s(attempt)))[0]:
            attempt += 1
            job = await jobs.job(self._id)
            if job.has_ended:
                await self._read_rest(jobs, reading)
                return job
        reading.result()
        return await jobs.job(self._id)

    async def _read_rest(self, jobs: "Jobs", reading: "asyncio.Task[None]") -> None:
        """Print the rest of the output of a job that has ended: all at once where it is short, else as it comes."""
        whole = await jobs.whole_output(self._id) if self._seen <= SHORT else None
        if whole is not None:
            reading.cancel()
            await asyncio.wait({reading})
            if not reading.cancelled():
                reading.result()
            self._print(whole[self._seen :])
            return
        seen = -1
        while not reading.done() and self._seen != seen:
            seen = self._seen
            await asyncio.wait({reading}, timeout=QUIET_S)
        if reading.done():
            reading.result()
        else:
            say(f"Ray does not send all of its output; the rest is in job-driver-{self._id}.log (`eray logs`)")

    async def _stop(self, jobs: "Jobs", following: "asyncio.Task[Job]", submitted: asyncio.Event) -> None:
        """Stop the job, also one that is being submitted, and see it end."""
        arrived = asyncio.create_task(submitted.wait())
        await asyncio.wait({following, arrived}, timeout=STOP_S, return_when=asyncio.FIRST_COMPLETED)
        arrived.cancel()
        if following.done():
            return
        try:
            await jobs.stop(self._id)
        except ErayError as exc:
            say(f"Ray Job {self._id} may still run: {exc}")
            return
        await asyncio.wait({following}, timeout=STOP_S)
        if not following.done():
            say(f"Ray Job {self._id} did not end within {STOP_S:g} s; `eray jobs list` shows it")

    def _code(self, job: "Job") -> int:
        if job.status == "SUCCEEDED":
            return 0
        if job.status == "STOPPED":
            say(f"Ray Job {job.id} was stopped")
            return 128 + signal.SIGTERM
        if not job.code:
            say(f"Ray Job {job.id} failed: {job.message}")
            return 1
        code = job.code if job.code > 0 else 128 - job.code
        say(f"Ray Job {job.id} failed with exit code {code}")
        return code
