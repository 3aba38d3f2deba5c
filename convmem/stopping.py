"""How a command ends when it is told to: in order, without a trace, and with the status 128 + the signal's number.

A command that dies where it stands leaves half of what it was making. So whoever makes something says how it can be
ended: `raised` for work that only has to be unwound, `noticed` for work that asks between two steps, `run` for work on
an event loop. A second signal ends the process at once: what stays then is swept by the next one.

Rejected: KeyboardInterrupt. It knows one signal only, and may come between any two steps, also in the middle of what
must not be torn. A signal that was ignored at the start (nohup, a job in the background) stays ignored.
"""

import os
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from convmem.errors import Stopping

Result = TypeVar("Result")
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# What shells call the status of a process that a signal ended.
STATUS = 128


@contextmanager
def _first(on_signal: Callable[[int], object]) -> Iterator[None]:
    """Call `on_signal` for the first signal inside the block; only the main thread is told of any."""
    received: list[int] = []

    def handle(number: int, frame: object) -> None:
        if received:
            os._exit(STATUS + number)
        received.append(number)
        on_signal(number)

    is_told = threading.current_thread() is threading.main_thread()
    heard = [number for number in SIGNALS if is_told and signal.getsignal(number) is not signal.SIG_IGN]
    before = [(number, signal.signal(number, handle)) for number in heard]
    try:
        yield
    finally:
        for number, handler in before:
            signal.signal(number, handler)


@contextmanager
def on_loop(on_first: Callable[[], object]) -> Iterator[None]:
    """Call `on_first` on the running event loop for the first signal inside the block; a second one ends at once."""
    # Imported here: most verbs need no loop.
    import asyncio

    loop = asyncio.get_running_loop()
    received: list[int] = []

    def handle(number: int) -> None:
        if received:
            os._exit(STATUS + number)
        received.append(number)
        on_first()

    heard = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    for number in heard:
        loop.add_signal_handler(number, handle, number)
    try:
        yield
    finally:
        for number in heard:
            loop.remove_signal_handler(number)


class Phases:
    """Work on a loop that comes in phases, each of which stops in its own way: `on_loop(phases.stop)` around all of it.

    A signal stops the phase that is at work, and one that comes between two of them stops the next at its start.
    """

    def __init__(self) -> None:
        self._is_stopped = False
        self._on_stop: Callable[[], object] | None = None

    def stop(self) -> None:
        """Stop the phase that is at work, and every later one."""
        self._is_stopped = True
        if self._on_stop is not None:
            self._on_stop()

    @contextmanager
    def phase(self, on_stop: Callable[[], object]) -> Iterator[None]:
        """Call `on_stop` once the work inside the block is to stop, at once if it is already."""
        self._on_stop = on_stop
        try:
            if self._is_stopped:
                on_stop()
            yield
        finally:
            self._on_stop = None


@contextmanager
def raised() -> Iterator[None]:
    """A signal inside the block raises SystemExit there."""

    def leave(number: int) -> None:
        raise SystemExit(STATUS + number)

    with _first(leave):
        yield


@contextmanager
def noticed() -> Iterator[Callable[[], bool]]:
    """Yield a function that is true once there was a signal. Stopping, raised for that reason, becomes SystemExit."""
    received: list[int] = []
    with _first(received.append):
        try:
            yield lambda: bool(received)
        except Stopping:
            if received:
                raise SystemExit(STATUS + received[0]) from None
            raise


def run(work: Coroutine[Any, Any, Result]) -> Result:
    """Run `work` on an event loop of its own; a signal cancels it, and SystemExit follows once it has ended."""
    # Imported here: most verbs ask a daemon and need no loop.
    import asyncio

    received: list[int] = []

    async def cancelled_by_signals() -> Result:
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        assert task is not None

        def cancel(number: int) -> None:
            received.append(number)
            loop.call_soon_threadsafe(task.cancel)

        with _first(cancel):
            return await work

    try:
        return asyncio.run(cancelled_by_signals())
    except asyncio.CancelledError:
        if received:
            raise SystemExit(STATUS + received[0]) from None
        raise
