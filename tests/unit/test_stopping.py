"""stopping: a signal ends a command in order and with its own status, and takes nothing over that is not its own."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from convmem import stopping
from convmem.errors import Stopping
from tests.support.source import REPOSITORY

STATUS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}


@pytest.fixture(autouse=True)
def heard() -> Iterator[None]:
    """Signals as a terminal leaves them; whoever runs the tests may have told them to ignore some (nohup)."""
    before = {number: signal.getsignal(number) for number in stopping.SIGNALS}
    for number in stopping.SIGNALS:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def handlers() -> list[object]:
    return [signal.getsignal(number) for number in stopping.SIGNALS]


def test_every_signal_that_is_heard_has_its_status_here():
    assert set(STATUS) == set(stopping.SIGNALS)


@pytest.mark.parametrize("number", STATUS)
def test_work_is_unwound(number: signal.Signals):
    before, undone = handlers(), []

    def work() -> None:
        with stopping.raised():
            try:
                signal.raise_signal(number)
            finally:
                undone.append(number)

    with pytest.raises(SystemExit) as ended:
        work()
    assert (ended.value.code, undone) == (STATUS[number], [number])
    assert handlers() == before


@pytest.mark.parametrize("number", STATUS)
def test_work_that_asks_ends_where_it_asks(number: signal.Signals):
    before, steps = handlers(), []

    def work() -> None:
        with stopping.noticed() as is_stopped:
            assert not is_stopped()
            signal.raise_signal(number)
            steps.append("goes on")
            if is_stopped():
                raise Stopping("stopped", retry_after_ms=1)

    with pytest.raises(SystemExit) as ended:
        work()
    assert (ended.value.code, steps) == (STATUS[number], ["goes on"])
    assert handlers() == before


def test_work_that_is_done_all_the_same_is_done():
    with stopping.noticed() as is_stopped:
        signal.raise_signal(signal.SIGTERM)
        assert is_stopped()


def test_a_stop_for_another_reason_stays_what_it_is():
    with pytest.raises(Stopping), stopping.noticed():
        raise Stopping("the daemon is stopping", retry_after_ms=1)


@pytest.mark.parametrize("number", STATUS)
def test_a_loop_is_left_once_its_work_has_tidied_up(number: signal.Signals):
    before, tidied = handlers(), []

    async def work() -> None:
        try:
            signal.raise_signal(number)
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            tidied.append(number)

    with pytest.raises(SystemExit) as ended:
        stopping.run(work())
    assert (ended.value.code, tidied) == (STATUS[number], [number])
    assert handlers() == before


def test_what_the_work_comes_to_or_raises_comes_through():
    async def work(fails: bool) -> int:
        if fails:
            raise ZeroDivisionError
        return 7

    assert stopping.run(work(False)) == 7
    with pytest.raises(ZeroDivisionError):
        stopping.run(work(True))


def test_an_ignored_signal_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stopping.raised():
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_second_signal_ends_the_process_at_once():
    code = (
        "import signal\nfrom convmem import stopping\nwith stopping.noticed():\n"
        "    signal.raise_signal(signal.SIGINT)\n    print('one', flush=True)\n"
        "    signal.raise_signal(signal.SIGTERM)\n    print('two', flush=True)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, timeout=20)
    assert (done.returncode, done.stdout, done.stderr) == (143, "one\n", "")


@pytest.mark.parametrize("number", STATUS)
async def test_on_a_loop_the_first_signal_is_told_once(number: signal.Signals):
    told = asyncio.Event()
    with stopping.on_loop(told.set):
        signal.raise_signal(number)
        await asyncio.wait_for(told.wait(), 20)
    assert signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler)


async def test_on_a_loop_an_ignored_signal_stays_ignored():
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with stopping.on_loop(lambda: None):
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        signal.raise_signal(signal.SIGHUP)
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


def test_on_a_loop_a_second_signal_ends_the_process_at_once():
    code = (
        "import asyncio, signal\nfrom convmem import stopping\nasync def work():\n    told = asyncio.Event()\n"
        "    with stopping.on_loop(told.set):\n        signal.raise_signal(signal.SIGINT)\n        await told.wait()\n"
        "        print('one', flush=True)\n        signal.raise_signal(signal.SIGTERM)\n"
        "        await asyncio.Event().wait()\n"
        "asyncio.run(work())"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, timeout=20)
    assert (done.returncode, done.stdout, done.stderr) == (143, "one\n", "")


def test_a_stop_reaches_the_phase_that_is_at_work_and_every_later_one():
    phases, told = stopping.Phases(), list[str]()
    with phases.phase(lambda: told.append("first")):
        assert told == []
    with phases.phase(lambda: told.append("second")):
        phases.stop()
        assert told == ["second"]
    with phases.phase(lambda: told.append("third")):
        assert told == ["second", "third"]


def test_a_stop_between_two_phases_reaches_the_next():
    phases, told = stopping.Phases(), list[str]()
    with phases.phase(lambda: told.append("over")):
        pass
    phases.stop()
    assert told == []
    with phases.phase(lambda: told.append("next")):
        assert told == ["next"]
