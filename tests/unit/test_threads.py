"""Blocking calls in threads that nobody has to wait for."""

import asyncio
import threading
import time

import pytest

from eray._io.threads import in_daemon_thread


def test_result_and_error_arrive():
    def divide(a, b):
        assert threading.current_thread() is not threading.main_thread()
        return a / b

    assert asyncio.run(in_daemon_thread(divide, 6, 2)) == 3
    with pytest.raises(ZeroDivisionError):
        asyncio.run(in_daemon_thread(divide, 1, 0))


def test_loop_ends_while_a_call_blocks():
    block, ended = threading.Event(), threading.Event()

    def wait():
        block.wait(30)
        ended.set()

    async def give_up():
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(in_daemon_thread(wait), 0.05)

    began = time.monotonic()
    asyncio.run(give_up())
    assert time.monotonic() - began < 5
    block.set()
    assert ended.wait(5)  # its answer, for which no loop is left, does no harm
