"""notifying: what a service manager hears, over a real datagram socket, and when."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from convmem import notifying
from convmem.notifying import NotWorking, ServiceManager, Telling, service_manager
from tests.support.waiting import until


@contextmanager
def listening(address: str) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as unix:
        unix.bind("\0" + address[1:] if address.startswith("@") else address)
        unix.setblocking(False)
        yield unix


def heard(unix: socket.socket) -> list[list[str]]:
    """The lines of each datagram that has come."""
    found = []
    while True:
        try:
            found.append(unix.recv(4096).decode().split("\n"))
        except BlockingIOError:
            return found


@pytest.mark.parametrize("name", ["path", "@convmem-test-{}"])
def test_assignments_go_out_as_one_datagram(tmp_path: Path, name: str):
    address = str(tmp_path / name) if name == "path" else name.format(tmp_path.name)
    with listening(address) as unix:
        ServiceManager(address).tell("READY=1", "STATUS=a line\nand another")
        assert heard(unix) == [["READY=1", "STATUS=a line and another"]]


def test_nobody_who_listens_disturbs_nothing(tmp_path: Path):
    ServiceManager().tell("READY=1")
    ServiceManager(str(tmp_path / "nowhere")).tell("READY=1")
    ServiceManager("/" + "x" * 200).tell("READY=1")
    with listening(str(tmp_path / "full")) as unix:
        manager = ServiceManager(str(tmp_path / "full"))
        for _ in range(5_000):
            manager.tell("WATCHDOG=1")
        assert heard(unix)


ENVIRONMENTS: list[tuple[dict[str, str], str | None, float | None]] = [
    ({}, None, None),
    ({"NOTIFY_SOCKET": ""}, None, None),
    ({"NOTIFY_SOCKET": "relative"}, None, None),
    ({"NOTIFY_SOCKET": "@"}, None, None),
    ({"NOTIFY_SOCKET": "vsock:2:1"}, None, None),
    ({"NOTIFY_SOCKET": "/run/x"}, "/run/x", None),
    ({"NOTIFY_SOCKET": "@x", "WATCHDOG_USEC": "10000000"}, "@x", 10_000),
    ({"NOTIFY_SOCKET": "@x", "WATCHDOG_USEC": "10000000", "WATCHDOG_PID": "7"}, "@x", 10_000),
    ({"NOTIFY_SOCKET": "@x", "WATCHDOG_USEC": "10000000", "WATCHDOG_PID": "8"}, "@x", None),
    ({"NOTIFY_SOCKET": "@x", "WATCHDOG_USEC": "0"}, "@x", None),
    ({"NOTIFY_SOCKET": "@x", "WATCHDOG_USEC": "soon"}, "@x", None),
    ({"WATCHDOG_USEC": "10000000"}, None, None),
]


@pytest.mark.parametrize(("environment", "address", "watchdog_ms"), ENVIRONMENTS)
def test_the_environment_says_who_listens_and_how_often(
    environment: dict[str, str], address: str | None, watchdog_ms: float | None
):
    manager = service_manager(environment, pid=7)
    assert (manager.address, manager.watchdog_ms) == (address, watchdog_ms)


class Daemon:
    """What can be looked at: whether the store is open, and whether it works."""

    def __init__(self) -> None:
        self.opening = asyncio.Event()
        self.is_working = True
        self.hangs = False
        self.looks = 0

    async def opened(self) -> str:
        await self.opening.wait()
        return "open"

    async def works(self) -> str:
        self.looks += 1
        if self.hangs:
            await asyncio.Event().wait()
        if not self.is_working:
            raise NotWorking("no")
        return "serving"


@asynccontextmanager
async def told(tmp_path: Path, watchdog_ms: float | None, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(notifying, "NOTIFY_OPENING_MS", 5)
    daemon = Daemon()
    with listening(str(tmp_path / "notify")) as unix:
        telling = Telling(ServiceManager(str(tmp_path / "notify"), watchdog_ms), daemon.opened, daemon.works)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(telling.run())
            yield daemon, unix, telling
            telling.stop()
        assert heard(unix)[-1] == ["STOPPING=1", "STATUS=stopping"]


async def next_lines(unix: socket.socket, line: str) -> list[str]:
    """The lines of the next datagram that holds this one; those before it are dropped."""
    found: list[list[str]] = []

    def come() -> bool:
        found.extend(datagram for datagram in heard(unix) if any(part.startswith(line) for part in datagram))
        return bool(found)

    await until(come)
    return found[0]


async def test_it_is_ready_once_it_works_and_not_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    async with told(tmp_path, None, monkeypatch) as (daemon, unix, _):
        assert (await next_lines(unix, "EXTEND_TIMEOUT_USEC"))[0] == "EXTEND_TIMEOUT_USEC=30000000"
        daemon.is_working = False
        daemon.opening.set()
        await until(lambda: daemon.looks > 2)
        assert not [datagram for datagram in heard(unix) if "READY=1" in datagram]
        daemon.is_working = True
        assert await next_lines(unix, "READY=1") == ["READY=1", "STATUS=serving"]


async def test_the_watchdog_hears_of_it_as_long_as_it_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    async with told(tmp_path, 20, monkeypatch) as (daemon, unix, _):
        daemon.opening.set()
        for _ in range(3):
            assert (await next_lines(unix, "WATCHDOG=1"))[1] == "STATUS=serving"
        for trouble in ("is_working", "hangs"):
            setattr(daemon, trouble, trouble == "hangs")
            for _ in range(2):
                # What was under way when the trouble began may still be told.
                looks, said = daemon.looks, heard(unix)
                await until(lambda looks=looks: daemon.looks > looks + 2)
            assert said is not None
            assert heard(unix) == []
            setattr(daemon, trouble, trouble != "hangs")
            await next_lines(unix, "WATCHDOG=1")


async def test_without_a_manager_nothing_is_looked_at():
    daemon = Daemon()
    telling = Telling(ServiceManager(), daemon.opened, daemon.works)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(telling.run())
        for _ in range(10):
            await asyncio.sleep(0)
        telling.stop()
    assert daemon.looks == 0


async def test_a_stop_while_it_opens_ends_it_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    async with told(tmp_path, None, monkeypatch) as (_, unix, _telling):
        await next_lines(unix, "EXTEND_TIMEOUT_USEC")
