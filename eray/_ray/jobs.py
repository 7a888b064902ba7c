"""The Ray Jobs of one cluster, by the REST API of its dashboard.

Ray's own client takes the address of another cluster from the environment (FACTS R18), follows proxies, and waits for
ever where nobody answers; it is used only to send a directory. The REST API is documented and the same since Ray 2.2.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote, unquote

import aiohttp

from eray._core.access import Access
from eray._io.threads import in_daemon_thread
from eray.errors import ClusterLostError, RayAttachError, UsageError

ASK_S = 15.0
SUBMIT_S = 60.0
SEND_S = 600.0
ENDED = frozenset({"SUCCEEDED", "FAILED", "STOPPED"})
COMMAND = "eray-command"
"""The metadata that holds the command as the user wrote it."""
DIVERTING = ("RAY_ADDRESS", "RAY_API_SERVER_ADDRESS")


@dataclass(frozen=True)
class Job:
    """One Ray Job: ``status`` in Ray's words, ``code`` of its driver where it has ended by itself."""

    id: str
    status: str
    command: str
    code: int | None
    message: str
    started_s: float | None

    @classmethod
    def from_json(cls, about: Mapping[str, Any]) -> Self:
        """Read what the dashboard says of a job."""
        command = (about.get("metadata") or {}).get(COMMAND) or about.get("entrypoint") or ""
        started = about.get("start_time")
        return cls(
            id=str(about["submission_id"]),
            status=str(about["status"]),
            command=str(command),
            code=about.get("driver_exit_code"),
            message=str(about.get("message") or ""),
            started_s=started / 1000 if started else None,
        )

    @property
    def has_ended(self) -> bool:
        """Whether nothing of it runs any more."""
        return self.status in ENDED


class Jobs:
    """Asks the dashboard of one cluster, and of no other. Every call has a deadline."""

    def __init__(self, access: Access, token: str | None, ask_s: float = ASK_S) -> None:
        self._access, self._url, self._ask_s = access, f"http://{access.dashboard}", ask_s
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        no_limit = aiohttp.ClientTimeout(total=None)  # each question has its own; output comes for days
        self._session = aiohttp.ClientSession(headers=self._headers, trust_env=False, timeout=no_limit)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()

    async def check(self) -> None:
        """Check that the cluster itself answers there: without tokens only Ray's name of its life can tell.

        Raises:
            RayAttachError: it is another one.
            ClusterLostError: nobody answers.
        """
        session = (await self._ask("GET", "/api/version"))["session_name"]
        if self._access.session not in (None, session):
            raise self._another()

    async def submit(self, job_id: str, entrypoint: str, command: str) -> None:
        """Start ``entrypoint``, a line for the shell, as the job ``job_id``."""
        job = {"submission_id": job_id, "entrypoint": entrypoint, "metadata": {COMMAND: command}}
        await self._ask("POST", "/api/jobs/", job, SUBMIT_S)

    async def submit_directory(
        self, job_id: str, entrypoint: str, command: str, directory: str, environ: MutableMapping[str, str]
    ) -> None:
        """Start the job in a copy of a directory of this machine, which Ray sends to the cluster.

        Raises:
            RayAttachError: Ray does not take it.
        """
        await self.check()
        options = {"submission_id": job_id, "entrypoint": entrypoint, "metadata": {COMMAND: command}}
        try:
            async with asyncio.timeout(SEND_S):
                await in_daemon_thread(_send, self._url, self._headers, options, directory, environ)
        except TimeoutError as exc:
            raise self._lost(f"did not take the directory within {SEND_S:g} s") from exc
        except (OSError, RuntimeError, ValueError) as exc:
            raise RayAttachError(
                self._access.node, f"Ray does not take {directory} ({exc})", "give a smaller directory, or a shared one"
            ) from exc

    async def list(self) -> list[Job]:
        """Return the jobs that were submitted, the oldest first."""
        rows = await self._ask("GET", "/api/jobs/")
        jobs = [Job.from_json(row) for row in rows if row.get("submission_id")]
        return sorted(jobs, key=lambda job: job.started_s or 0.0)

    async def job(self, job_id: str) -> Job:
        """Return one job.

        Raises:
            UsageError: the cluster has no such job.
        """
        return Job.from_json(await self._ask("GET", self._path(job_id)))

    async def stop(self, job_id: str) -> None:
        """Have a job ended: SIGTERM, and SIGKILL three seconds later; nothing where it has ended."""
        await self._ask("POST", f"{self._path(job_id)}/stop")

    async def output(self, job_id: str) -> AsyncIterator[str]:
        """Yield what a job printed and prints, from its beginning, until it ends or the connection does.

        Whoever reads must ask for the job now and then: the dashboard answers no heartbeat here (Ray 2.60).
        """
        assert self._session is not None
        try:
            socket = await asyncio.wait_for(
                self._session.ws_connect(f"{self._url}{self._path(job_id)}/logs/tail", max_msg_size=0), self._ask_s
            )
        except (aiohttp.ClientError, OSError, TimeoutError):
            return  # whoever follows asks for the job next, and hears why
        async with socket:
            async for message in socket:
                if message.type is not aiohttp.WSMsgType.TEXT:
                    return
                yield message.data

    async def whole_output(self, job_id: str) -> str | None:
        """Return all that a job that has ended printed, as ``output`` yields it; None where Ray does not send it."""
        try:
            return str((await self._ask("GET", f"{self._path(job_id)}/logs"))["logs"])
        except (ClusterLostError, RayAttachError):
            return None

    async def _ask(self, method: str, path: str, body: object = None, timeout_s: float | None = None) -> Any:
        assert self._session is not None
        timeout_s = timeout_s or self._ask_s
        limit = aiohttp.ClientTimeout(total=timeout_s)
        try:
            async with self._session.request(method, self._url + path, json=body, timeout=limit) as answer:
                text = await answer.text()
        except TimeoutError as exc:
            raise self._lost(f"did not answer within {timeout_s:g} s") from exc
        except (aiohttp.ClientError, OSError) as exc:
            raise self._lost(f"does not answer ({type(exc).__name__})") from exc
        if answer.status in (401, 403):
            raise self._another()
        if answer.status == 404 and path.startswith("/api/jobs/"):
            raise self._no_job(unquote(path.split("/")[3]))
        try:
            if answer.status == 200:
                return json.loads(text)
        except ValueError:
            pass
        raise RayAttachError(
            self._access.node,
            f"Ray's dashboard at {self._access.dashboard} answers {answer.status}: {text[-500:].strip()}",
            "see its logs (`eray logs`)",
        )

    def _path(self, job_id: str) -> str:
        if not job_id.strip("."):  # that would be another path
            raise self._no_job(job_id)
        return f"/api/jobs/{quote(job_id, safe='')}"

    def _no_job(self, job_id: str) -> UsageError:
        return UsageError(f"{self._access} has no Ray Job {job_id!r}; `eray jobs list` shows them")

    def _lost(self, found: str) -> ClusterLostError:
        where = f"Ray's dashboard at {self._access.dashboard} {found}"
        return ClusterLostError(self._access.node, f"{self._access} is lost: {where}", "see the log of `eray up`")

    def _another(self) -> RayAttachError:
        return RayAttachError(
            self._access.node,
            f"{self._access} is gone: at {self._access.dashboard} another one answers",
            self._access.remedy,
        )


def _send(
    url: str, headers: Mapping[str, str], options: Mapping[str, Any], directory: str, environ: MutableMapping[str, str]
) -> None:
    with _undiverted(environ):
        from ray.job_submission import JobSubmissionClient

        client = JobSubmissionClient(url, headers=dict(headers))
        client.submit_job(**options, runtime_env={"working_dir": directory})


@contextmanager
def _undiverted(environ: MutableMapping[str, str]) -> Iterator[None]:
    """Take out what Ray's client would follow instead of the address that it is given."""
    names = [name for name in environ if name in DIVERTING or name.lower().endswith("_proxy")]
    taken = {name: environ.pop(name) for name in names}
    try:
        yield
    finally:
        environ.update(taken)
