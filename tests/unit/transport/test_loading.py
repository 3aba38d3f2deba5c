"""Tests of the wait for the SDK."""

import asyncio
import subprocess
import sys
import threading
from typing import Any

import pytest

from convmem.transport.loading import Loading, kernel
from tests.support.source import REPOSITORY
from tests.support.toy import Toy, toy_catalog
from tests.support.waiting import PATIENCE_S


async def test_who_needs_the_kernel_waits_and_the_loop_goes_on_meanwhile():
    may_load = threading.Event()
    made = kernel(toy_catalog, Toy())

    def load() -> object:
        assert may_load.wait(PATIENCE_S)
        return made()

    loading = Loading(load)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(loading.run())
        waiting = [tasks.create_task(loading.wait()) for _ in range(3)]
        await asyncio.wait(waiting, timeout=0)
        assert loading.kernel is None
        assert not any(task.done() for task in waiting)
        may_load.set()
    assert {task.result() for task in waiting} == {loading.kernel}
    assert await loading.wait() is loading.kernel


async def test_a_waiter_that_goes_away_stops_nothing():
    loading = Loading(kernel(toy_catalog, Toy()))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await loading.wait()
    await loading.run()
    assert await loading.wait() is loading.kernel


async def test_a_broken_installation_leaves_nobody_waiting():
    def load() -> Any:
        raise ImportError("no such library")

    loading = Loading(load)
    async with asyncio.timeout(PATIENCE_S):
        waiting = asyncio.gather(loading.wait(), return_exceptions=True)
        with pytest.raises(ImportError):
            await loading.run()
        (outcome,) = await waiting
    assert isinstance(outcome, AssertionError)


@pytest.mark.slow
def test_everything_but_the_kernel_is_imported_without_the_sdk():
    program = (
        "import sys, convmem.transport.http, convmem.transport.stdio\n"
        "sys.exit(any(name.split('.')[0] in {'mcp', 'mcp_types'} for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", program], cwd=REPOSITORY).returncode == 0
