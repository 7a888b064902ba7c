"""What the client of Ray Jobs makes of a dashboard that is another, broken, silent or gone."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web
from test_access import ACCESS

from eray._ray.jobs import Job, Jobs
from eray.errors import ClusterLostError, RayAttachError, UsageError

Act = Callable[[Jobs], Awaitable[Any]]
ROW = {"submission_id": "a", "status": "FAILED", "entrypoint": "cd x", "driver_exit_code": 7, "start_time": 2000}


def served(answer: Callable[[web.Request], Awaitable[web.StreamResponse]], act: Act, ask_s: float = 0.5) -> Any:
    """Return what ``act`` does with a dashboard that answers so."""

    async def run() -> Any:
        runner = web.AppRunner(app := web.Application(), shutdown_timeout=0.01)
        app.router.add_route("*", "/{path:.*}", answer)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        try:
            there = replace(ACCESS, dashboard=f"{host}:{port}")
            async with asyncio.timeout(20), Jobs(there, "the-token", ask_s) as jobs:
                return await act(jobs)
        finally:
            await asyncio.wait_for(runner.cleanup(), 5)

    return asyncio.run(run())


def says(body: object, status: int = 200) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def answer(request: web.Request) -> web.StreamResponse:
        if request.headers.get("Authorization") != "Bearer the-token":
            return web.Response(status=401)
        return web.json_response(body, status=status)

    return answer


def test_jobs_are_listed_the_oldest_first_without_drivers_of_their_own() -> None:
    later: Mapping[str, Any] = ROW | {"submission_id": "b", "start_time": 3000, "metadata": {"eray-command": "true"}}
    found = served(says([later, ROW, {"submission_id": None, "status": "RUNNING"}]), lambda jobs: jobs.list())
    assert found == [Job("a", "FAILED", "cd x", 7, "", 2.0), Job("b", "FAILED", "true", 7, "", 3.0)]
    assert found[0].has_ended


@pytest.mark.parametrize("status", [401, 403])
def test_a_dashboard_that_refuses_the_token_is_another_clusters(status: int) -> None:
    with pytest.raises(RayAttachError, match=r"the cluster of job 42 is gone: at 127.0.0.1:.* another one answers"):
        served(says({}, status), lambda jobs: jobs.list())


def test_a_dashboard_of_another_life_is_told_by_its_session() -> None:
    served(says({"session_name": "s"}), lambda jobs: jobs.check())
    with pytest.raises(RayAttachError, match="another one answers"):
        served(says({"session_name": "other"}), lambda jobs: jobs.check())


@pytest.mark.parametrize("job_id", ["x-1", "", ".", "..", "#", "?x", "a/b", "../version", "a b", "ä%2F"])
def test_a_job_that_is_not_there_is_named(job_id: str) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        assert request.match_info["path"].removesuffix("/stop") == f"api/jobs/{job_id}", "as Ray's dashboard reads it"
        return web.Response(status=404)

    says_so = rf"the cluster of job 42 has no Ray Job {re.escape(repr(job_id))}; `eray jobs list` shows them$"
    for act in (Jobs.job, Jobs.stop):
        with pytest.raises(UsageError, match=says_so):
            served(answer, lambda jobs, act=act: act(jobs, job_id))


def test_a_dashboard_that_fails_is_quoted() -> None:
    with pytest.raises(RayAttachError, match=r"answers 500: .*no agent.*; see its logs"):
        served(says("no agent", 500), lambda jobs: jobs.list())


async def silence(request: web.Request) -> web.StreamResponse:
    await asyncio.sleep(3)
    return web.Response()


async def hang_up(request: web.Request) -> web.StreamResponse:
    assert request.transport is not None
    request.transport.close()
    return web.Response()


@pytest.mark.parametrize(
    ("answer", "words"), [(silence, "did not answer within 0.1 s"), (hang_up, r"does not answer \(\w+\)")]
)
def test_a_dashboard_that_is_silent_or_gone_ends_the_wait(answer: Any, words: str) -> None:
    with pytest.raises(ClusterLostError, match=f"the cluster of job 42 is lost: Ray's dashboard at .* {words}"):
        served(answer, lambda jobs: jobs.list(), ask_s=0.1)


@pytest.mark.parametrize(
    ("answer", "whole"),
    [(says({"logs": "one\ntwo\n"}), "one\ntwo\n"), (says("no agent", 500), None), (silence, None), (hang_up, None)],
    ids=["sent", "fails", "silent", "gone"],
)
def test_whole_output_is_had_at_once_or_not_at_all(answer: Any, whole: str | None) -> None:
    assert served(answer, lambda jobs: jobs.whole_output("a"), ask_s=0.1) == whole


def test_output_ends_when_the_connection_does() -> None:
    async def read(jobs: Jobs) -> list[str]:
        return [text async for text in jobs.output("a")]

    async def two_lines(request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        for line in ("one\n", "two\n"):
            await socket.send_str(line)
        return socket

    assert served(two_lines, read) == ["one\n", "two\n"]
    assert served(silence, read, ask_s=0.1) == served(hang_up, read) == []
