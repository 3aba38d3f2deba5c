"""A central daemon behind a proxy that speaks TLS, and two machines that work with it through every door at once.

Tokens are revoked and the daemon is killed while they work. No client is started anew, nothing that was acknowledged is
missing, and each record says who wrote it.
"""

import json
import queue
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import pytest
import trustme

from convmem import tokens
from convmem.clock import SystemClock
from tests.support.daemons import complaints
from tests.support.machines import Machine, NoNamespaces, loopback, namespaces
from tests.support.source import REPOSITORY

pytestmark = pytest.mark.slow
WAIT_S = 60
PORT, TLS_PORT = 18_484, 18_443
CADDYFILE = REPOSITORY / "deploy" / "Caddyfile"
CADDY = Path(sys.executable).parent / "caddy"


class Worker:
    """One agent program on a machine, and what it says."""

    def __init__(self, machine: Machine, door: str, url: str, environment: dict[str, str]) -> None:
        self.session = f"{machine.name} {door}"
        self.process = machine.start(
            sys.executable, "-m", "tests.support.worker", door, url, self.session, environment=environment
        )
        self.acknowledged: dict[int, str] = {}
        self.failed: list[str] = []
        self._said: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._threads = [
            threading.Thread(target=self._listen, args=(self.process.stdout, self._said.put), daemon=True),
            threading.Thread(target=self._listen, args=(self.process.stderr, self.failed.append), daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    @staticmethod
    def _listen(stream: object, heard: Callable[[str], None]) -> None:
        for line in stream:  # type: ignore[attr-defined]
            heard(line.rstrip("\n"))

    def hear(self) -> str:
        """The next thing it says."""
        try:
            said = self._said.get(timeout=WAIT_S)
        except queue.Empty:
            raise AssertionError(f"{self.session} fell silent: {self.failed[-5:]}") from None
        what, _, rest = said.partition(" ")
        if what == "ack":
            number, _, message_id = rest.partition(" ")
            self.acknowledged[int(number)] = message_id
        else:
            self.failed.append(rest)
        return what

    def until(self, what: str, times: int = 1) -> None:
        """Listen until it has said this so many times more."""
        while times:
            times -= self.hear() == what

    def end(self) -> None:
        """Have it finish what it does, and hear the rest."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        assert self.process.wait(WAIT_S) == 0, self.failed[-5:]
        for thread in self._threads:
            thread.join(WAIT_S)
        while not self._said.empty():
            self.hear()


class Central:
    """The daemon and the proxy before it, on the machine where the store is."""

    def __init__(self, machine: Machine, folder: Path) -> None:
        self.machine = machine
        self.data_dir = folder / "data"
        self.url = f"https://{machine.address}:{TLS_PORT}/mcp"
        self.authority = folder / "authority.pem"
        authority = trustme.CA()
        authority.cert_pem.write_to_path(str(self.authority))
        issued = authority.issue_cert(machine.address)
        certificate, key = folder / "certificate.pem", folder / "key.pem"
        issued.cert_chain_pems[0].write_to_path(str(certificate))
        issued.private_key_pem.write_to_path(str(key))
        settings = folder / "Caddyfile"
        # Caddy as people are told to run it, but for what reaches beyond these machines.
        settings.write_text(f"{{\n\tadmin off\n\tauto_https off\n}}\nimport {CADDYFILE}\n", encoding="utf-8")
        self.proxy = machine.start(
            str(CADDY if CADDY.exists() else shutil.which("caddy")),
            *("run", "--adapter", "caddyfile", "--config", str(settings)),
            environment={
                "HOME": str(folder),
                "CONVMEM_HOST": f"https://{machine.address}:{TLS_PORT}",
                "CONVMEM_UPSTREAM": f"{machine.address}:{PORT}",
                "CONVMEM_TLS": f"tls {certificate} {key}",
            },
        )
        self.proxy_log = threading.Thread(target=lambda: list(self.proxy.stderr or ()), daemon=True)
        self.proxy_log.start()

    def start(self) -> None:
        """Start the daemon on the machine's own address; return when it says that it listens."""
        self.daemon = self.machine.convmem(
            *("serve", "--data-dir", str(self.data_dir), "--bind", f"{self.machine.address}:{PORT}"),
            *("--allowed-host", self.machine.address, "--profile", "all"),
        )
        assert self.daemon.stdout is not None
        line = self.daemon.stdout.readline()
        assert "bearer token required" in line, line + (self.daemon.stderr.read() if self.daemon.stderr else "")
        self.journal: list[str] = []
        threading.Thread(target=lambda: self.journal.extend(self.daemon.stderr or ()), daemon=True).start()

    def kill(self) -> None:
        self.daemon.kill()
        self.daemon.wait()

    def stop(self) -> None:
        self.daemon.terminate()
        assert self.daemon.wait(WAIT_S) == 0


MACHINES: dict[str, Callable[[], AbstractContextManager[dict[str, Machine]]]] = {
    "namespaces": namespaces,
    "loopback addresses": loopback,
}


@pytest.fixture(params=MACHINES)
def machines(request: pytest.FixtureRequest) -> Iterator[dict[str, Machine]]:
    with ExitStack() as stack:
        try:
            found = stack.enter_context(MACHINES[request.param]())
        except NoNamespaces as reason:
            pytest.skip(str(reason))
        yield found


def capturing(machine: Machine, central: Central, environment: dict[str, str], count: int) -> None:
    """Fire hooks on a machine, as an agent program does."""
    for number in range(count):
        event = {"kind": "prompt", "session_id": f"{machine.name} hooks", "content": f"{machine.name} asks {number}"}
        hook = machine.convmem("capture", "--url", central.url, environment=environment)
        hook.communicate(json.dumps(event), timeout=WAIT_S)
        assert hook.returncode == 0


def history(central: Central, session: str) -> list[dict[str, object]]:
    """All messages of a session, as the daemon's own machine sees them."""
    asked = central.machine.convmem("export", "-", "--data-dir", str(central.data_dir))
    lines, problems = asked.communicate(timeout=WAIT_S)
    assert asked.returncode == 0, problems
    records = [json.loads(line) for line in lines.splitlines()]
    return [record for record in records if record.get("session_id") == session]


def test_two_machines_work_on_through_a_revoked_token_and_restarts(machines: dict[str, Machine], tmp_path: Path):
    central = Central(machines["central"], tmp_path)
    central.data_dir.mkdir()
    secrets = {
        name: tokens.create(central.data_dir, name, "write", None, SystemClock()).secret
        for name in ("laptop", "desktop")
    }
    central.start()
    environments = {
        name: {
            "CONVMEM_TOKEN": secret,
            "SSL_CERT_FILE": str(central.authority),
            "HOME": str(tmp_path / name),
            "PYTHONPATH": str(Path.cwd()),
        }
        for name, secret in secrets.items()
    }
    workers = {
        (name, door): Worker(machines[name], door, central.url, environments[name])
        for name in secrets
        for door in ("http", "bridge")
    }
    for worker in workers.values():
        worker.until("ack", 5)
    central.kill()
    central.start()
    for name in secrets:
        capturing(machines[name], central, environments[name], 3)
    for worker in workers.values():
        worker.until("ack", 5)
    central.stop()
    central.start()
    for worker in workers.values():
        worker.until("ack", 5)

    tokens.revoke(central.data_dir, "laptop")
    for door in ("http", "bridge"):
        workers["laptop", door].until("failed", 2)
        workers["desktop", door].until("ack", 5)
    for worker in workers.values():
        worker.end()
    for door in ("http", "bridge"):
        assert any("the token is none of this server's" in reason for reason in workers["laptop", door].failed)

    for name in secrets:
        for door in ("http", "bridge"):
            worker = workers[name, door]
            found = history(central, worker.session)
            assert len(found) == len({record["content"] for record in found})
            assert {record["message_id"] for record in found} >= set(worker.acknowledged.values())
            assert {origin_of(record) for record in found} == {name}
        hooked = history(central, f"{name} hooks")
        assert [record["content"] for record in hooked] == [f"{name} asks {number}" for number in range(3)]
        assert {origin_of(record) for record in hooked} == {name}
    central.stop()
    assert complaints(central.data_dir) == []
    assert not any(secret in line for secret in secrets.values() for line in central.journal)


def origin_of(record: dict[str, object]) -> str:
    """The device that an exported record names."""
    origin = record["origin"]
    assert isinstance(origin, dict)
    return str(origin["device"])
