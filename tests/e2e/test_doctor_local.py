"""The doctor on data directories of this machine: each finding by its real cause, and nothing is changed by a look."""

import json
import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

import apsw
import pytest

from convmem import tokens
from convmem.clock import SystemClock
from convmem.doctor import directory, here, local
from convmem.doctor.findings import Finding, status_of
from convmem.doctor.here import Here, Space
from convmem.doctor.local_findings import KINDS
from convmem.hooks.capture import spool_of
from convmem.hooks.options import parse
from convmem.hooks.target import target_of
from convmem.limits import MIB
from tests.support.commands import ran
from tests.support.daemons import Daemon, Refused, daemon
from tests.support.manual_clock import ManualClock
from tests.support.relays import answering, page
from tests.support.wrecks import SCRIPT, Wreck

pytestmark = pytest.mark.slow
NOBODY = 65_534
SHORT_MS = 300
ROOM = Space(free_bytes=10**12, has_names=True, is_read_only=False)
needs_root = pytest.mark.skipif(os.getuid() != 0, reason="only root may become somebody else")
HOLD = (
    "import fcntl, sys, time; file = open(sys.argv[1], 'a'); fcntl.flock(file, fcntl.LOCK_EX);"
    " print('held', flush=True); sys.stdin.read()"
)
AS_NOBODY = (
    "import os, sys, json, encodings.idna; from pathlib import Path;"
    " import convmem.doctor.local, convmem.daemon, convmem.clock;"
    " from convmem.doctor.here import Here; convmem.daemon.domains();"
    f" os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY});"
    " environment = json.loads(sys.argv[2]);"
    " settings = convmem.doctor.local.read(sys.argv[1], environment, Path('/'));"
    " found = convmem.doctor.local.examine(settings, environment, convmem.clock.SystemClock());"
    " print(json.dumps([one.facts() for one in found]))"
)


@dataclass
class Place:
    """A data directory and what it takes to spoil it."""

    directory: Path
    stack: ExitStack
    monkeypatch: pytest.MonkeyPatch

    @property
    def data_dir(self) -> Path:
        return self.directory / "data"

    def look(self, environment: Mapping[str, str] | None = None, **how: Any) -> list[Finding]:
        """What the doctor finds here. The port is one that nobody has, unless the environment says otherwise."""
        told = {"XDG_STATE_HOME": str(self.directory / "state"), "CONVMEM_BIND": f"127.0.0.1:{unused()}"}
        told |= environment or {}
        settings = local.read(str(self.data_dir), told, self.directory)
        if isinstance(settings, Finding):
            return [settings]
        how.setdefault("clock", SystemClock())
        return list(local.examined(Here(settings, told, **how)))

    def as_nobody(self, **environment: str) -> list[Finding]:
        """The same as another user of this machine."""
        for parent in (self.directory, *self.directory.parents):
            if parent != Path("/") and not parent.stat().st_mode & 0o005:
                parent.chmod(parent.stat().st_mode | 0o055)
        told = {"XDG_STATE_HOME": "/nonexistent", **environment}
        done = subprocess.run(
            [sys.executable, "-c", AS_NOBODY, str(self.data_dir), json.dumps(told)],
            capture_output=True,
            text=True,
            timeout=30,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": os.getcwd()},
        )
        assert done.returncode == 0, done.stderr
        return [
            Finding(one["finding"], known()[one["finding"]], one["seen"], one["change"])
            for one in json.loads(done.stdout)
        ]

    def wreck(self) -> Wreck:
        """A store that somebody has left in order."""
        made = Wreck(self.data_dir)
        made.play(SCRIPT)
        return made

    def run(self, *arguments: str, environment: Mapping[str, str] | None = None) -> Daemon:
        return self.stack.enter_context(daemon(self.data_dir, *arguments, environment=environment))

    def hold(self, path: Path) -> subprocess.Popen[str]:
        """Let another program take a lock."""
        process = subprocess.Popen(
            [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.stack.enter_context(process)
        self.stack.callback(process.kill)
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        return process

    def mounted(self, kind: str) -> None:
        """Let the data directory lie on another kind of file system, as the system tells it."""
        told = self.directory / "mountinfo"
        told.write_text(f"1 0 0:1 / / rw - ext4 /dev/a rw\n2 1 0:2 / {self.directory} rw shared:1 - {kind} x rw\n")
        self.monkeypatch.setattr(directory, "MOUNTS", told)


def known() -> dict[str, Any]:
    from convmem.doctor import remote_findings

    return {**KINDS, **remote_findings.KINDS}


def unused() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    with ExitStack() as stack:
        yield Place(tmp_path, stack, monkeypatch)


# --- causes


def no_fts5(place: Place) -> list[Finding]:
    place.monkeypatch.setattr(apsw, "compile_options", ())
    return place.look()


def file_in_its_place(place: Place) -> list[Finding]:
    place.data_dir.write_text("not a directory")
    return place.look()


def opened_to_others(place: Place) -> list[Finding]:
    place.wreck().directory.chmod(0o755)
    return place.look()


def root_s_files(place: Place) -> list[Finding]:
    """Somebody has started it as root once."""
    os.chown(place.wreck().directory, NOBODY, NOBODY)
    return place.as_nobody()


def read_only(place: Place) -> list[Finding]:
    place.wreck()
    return place.look(space=lambda path: ROOM._replace(is_read_only=True))


def on(kind: str) -> Callable[[Place], list[Finding]]:
    def look(place: Place) -> list[Finding]:
        place.wreck()
        place.mounted(kind)
        return place.look(space=lambda path: ROOM)

    return look


def with_room(free_bytes: int) -> Callable[[Place], list[Finding]]:
    def look(place: Place) -> list[Finding]:
        place.wreck()
        return place.look(space=lambda path: ROOM._replace(free_bytes=free_bytes))

    return look


def of_a_store(place: Place) -> list[Finding]:
    place.wreck()
    return place.look(space=lambda path: ROOM)


def of_a_daemon(place: Place) -> list[Finding]:
    running = place.run()
    running.client().write("a")
    return place.look({"CONVMEM_BIND": f"127.0.0.1:{running.port}"})


def killed(place: Place) -> list[Finding]:
    running = place.run()
    running.client().write("a")
    running.kill()
    return place.look()


def held_by_another_program(place: Place) -> list[Finding]:
    place.hold(place.wreck().directory / "store.lock")
    return place.look()


def no_socket_path(place: Place) -> list[Finding]:
    deep = Place(place.directory / ("x" * 110), place.stack, place.monkeypatch)
    deep.directory.mkdir()
    deep.wreck()
    return deep.look()


def without_its_socket(place: Place) -> list[Finding]:
    place.run()
    (place.data_dir / "convmem.sock").unlink()
    return place.look()


def of_another_user(place: Place) -> list[Finding]:
    place.run()
    os.chown(place.data_dir, NOBODY, NOBODY)
    return place.as_nobody()


def stopped(place: Place) -> list[Finding]:
    running = place.run()
    running.send(signal.SIGSTOP)
    place.stack.callback(running.send, signal.SIGCONT)
    return place.look(step_ms_max=SHORT_MS)


def full(place: Place) -> list[Finding]:
    import resource

    running = place.run()
    running.client().write("kept")
    assert running.process is not None
    _, hard = resource.prlimit(running.process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(running.process.pid, resource.RLIMIT_FSIZE, (1_000, hard))
    with pytest.raises(Refused):
        running.client().write("x" * 3_000)
    return place.look()


def failed(place: Place) -> list[Finding]:
    """What answers on the socket in the moment between a failed sync and the end of the process."""
    place.wreck()
    answer = page("503 Service Unavailable", b'{"status":"failed"}', kind=b"application/json")
    place.stack.enter_context(answering(lambda request: answer, unix=place.data_dir / "convmem.sock"))
    return place.look()


def never_written(place: Place) -> list[Finding]:
    place.data_dir.mkdir(mode=0o700)
    return place.look()


def torn(place: Place) -> list[Finding]:
    wreck = place.wreck()
    data = wreck.log.read_bytes()
    wreck.log.write_bytes(data + data[:60])
    return place.look()


def damaged(place: Place) -> list[Finding]:
    wreck = place.wreck()
    data = bytearray(wreck.log.read_bytes())
    data[60] ^= 1
    wreck.log.write_bytes(data)
    wreck.drop_index()
    return place.look()


def missing(place: Place) -> list[Finding]:
    place.wreck().log.unlink()
    return place.look()


def too_new(place: Place) -> list[Finding]:
    wreck = place.wreck()
    data = bytearray(wreck.log.read_bytes())
    data[4] = 99
    data[36:40] = crc32(bytes(data[:36])).to_bytes(4, "little")
    wreck.log.write_bytes(data)
    wreck.drop_index()
    return place.look()


def without_index(place: Place) -> list[Finding]:
    place.wreck().drop_index()
    return place.look()


def unfit_index(place: Place) -> list[Finding]:
    (place.wreck().directory / "index-1.db").write_bytes(b"not a database" * 1_000)
    return place.look()


def years_ago(place: Place) -> list[Finding]:
    place.wreck()
    return place.look(clock=ManualClock())


def tables_that_cannot_be_used(place: Place) -> list[Finding]:
    (place.wreck().directory / "tables").write_text("not a directory")
    return place.look()


def tables_of_another(place: Place) -> list[Finding]:
    (place.wreck().directory / "tables").mkdir(0o700)
    place.hold(place.data_dir / "tables" / ".lock")
    return place.look()


def broken_table(place: Place) -> list[Finding]:
    (place.data_dir / "tables" / "books").mkdir(parents=True)
    (place.data_dir / "tables" / "books" / "schema.yaml").write_text("fields: [")
    running = place.run()
    running.client("all").call("reload")
    return place.look()


def with_a_token(place: Place) -> list[Finding]:
    place.wreck()
    tokens.create(place.data_dir, "laptop", "write", None, SystemClock())
    return place.look()


def open_tokens(place: Place) -> list[Finding]:
    with_a_token(place)
    (place.data_dir / "tokens.json").chmod(0o644)
    return place.look()


def revoked_tokens(place: Place) -> list[Finding]:
    with_a_token(place)
    tokens.revoke(place.data_dir, "laptop")
    return place.look()


def damaged_tokens(place: Place) -> list[Finding]:
    place.wreck()
    (place.data_dir / "tokens.json").write_text("{")
    return place.look()


def listening(place: Place) -> int:
    """Another program, which answers with a page."""
    return place.stack.enter_context(answering(lambda request: page("200 OK"))).port


def taken(place: Place) -> list[Finding]:
    place.wreck()
    return place.look({"CONVMEM_BIND": f"127.0.0.1:{listening(place)}"})


def taken_by_a_convmem(place: Place) -> list[Finding]:
    place.wreck()
    other = place.stack.enter_context(daemon(place.directory / "other"))
    return place.look({"CONVMEM_BIND": f"127.0.0.1:{other.port}"})


def bound_to(address: str) -> Callable[[Place], list[Finding]]:
    def look(place: Place) -> list[Finding]:
        place.wreck()
        return place.look({"CONVMEM_BIND": address, "CONVMEM_HTTP_TOKEN": "for-the-tests"})

    return look


def privileged(place: Place) -> list[Finding]:
    place.wreck()
    os.chown(place.data_dir, NOBODY, NOBODY)
    for path in place.data_dir.iterdir():
        os.chown(path, NOBODY, NOBODY)
    return place.as_nobody(CONVMEM_BIND="127.0.0.1:81")


def no_place_for_a_spool(place: Place) -> list[Finding]:
    (place.directory / "state").mkdir(0o700)
    os.chown(place.wreck().directory, NOBODY, NOBODY)
    return place.as_nobody(XDG_STATE_HOME=str(place.directory / "state"))


def spooled(place: Place, *, dropped: int = 0) -> list[Finding]:
    place.wreck()
    environment = {"XDG_STATE_HOME": str(place.directory / "state")}
    spool = spool_of(target_of(parse([f"--data-dir={place.data_dir}"]), environment, "/"), environment, SystemClock())
    assert spool is not None
    spool.append([b'{"session_id":"s","kind":"prompt","at":1700000000000,"content":"x"}'] * 3, dropped)
    return place.look()


Cause = Callable[[Place], list[Finding]]
CAUSES: dict[str, Cause] = {
    "runtime-ok": of_a_store,
    "runtime-no-fts5": no_fts5,
    "settings-ok": of_a_store,
    "settings-unknown": lambda place: place.look(unknown=("CONVMEM_HTTP_TOKEN_FIEL",)),
    "settings-invalid": lambda place: place.look({"CONVMEM_BIND": "8484"}),
    "directory-ok": of_a_store,
    "directory-missing": lambda place: place.look(),
    "directory-unusable": file_in_its_place,
    "directory-open": opened_to_others,
    "directory-files": root_s_files,
    "disk-ok": of_a_store,
    "disk-read-only": read_only,
    "disk-network": on("nfs4"),
    "disk-passing": on("overlay"),
    "disk-full": with_room(4 * MIB),
    "disk-low": with_room(40 * MIB),
    "lock-free": of_a_store,
    "lock-left": killed,
    "lock-held": of_a_daemon,
    "lock-foreign": held_by_another_program,
    "socket-ok": of_a_daemon,
    "socket-none": no_socket_path,
    "socket-left": killed,
    "socket-missing": without_its_socket,
    "socket-closed": of_another_user,
    "socket-silent": stopped,
    "health-well": of_a_daemon,
    "health-unwell": full,
    "health-over": failed,
    "log-none": never_written,
    "log-ok": of_a_store,
    "log-in-use": of_a_daemon,
    "log-torn": torn,
    "log-damaged": damaged,
    "log-missing": missing,
    "log-too-new": too_new,
    "index-none": never_written,
    "index-ok": killed,
    "index-in-use": of_a_daemon,
    "index-missing": without_index,
    "index-unfit": unfit_index,
    "clock-in-order": of_a_store,
    "clock-behind": years_ago,
    "tables-none": of_a_store,
    "tables-ok": of_a_daemon,
    "tables-unusable": tables_that_cannot_be_used,
    "tables-held": tables_of_another,
    "tables-broken": broken_table,
    "tokens-none": of_a_store,
    "tokens-ok": with_a_token,
    "tokens-open": open_tokens,
    "tokens-revoked": revoked_tokens,
    "tokens-damaged": damaged_tokens,
    "bind-ok": of_a_store,
    "bind-unsafe": lambda place: place.look({"CONVMEM_BIND": "0.0.0.0:8484"}),
    "port-free": of_a_store,
    "port-any": bound_to("127.0.0.1:0"),
    "port-ours": of_a_daemon,
    "port-elsewhere": without_its_socket,
    "port-other-store": taken_by_a_convmem,
    "port-taken": taken,
    "port-unavailable": bound_to("203.0.113.1:8484"),
    "port-privileged": privileged,
    "look-refused": root_s_files,
    "spool-unusable": no_place_for_a_spool,
    "spool-empty": of_a_store,
    "spool-waiting": spooled,
    "spool-dropped": lambda place: spooled(place, dropped=2),
}
AS_ROOT = {"directory-files", "socket-closed", "port-privileged", "look-refused", "spool-unusable"}


def test_every_finding_has_a_cause_here():
    assert set(CAUSES) == set(KINDS)


@pytest.mark.parametrize("name", [pytest.param(name, marks=needs_root if name in AS_ROOT else ()) for name in CAUSES])
def test_a_finding_is_made_by_its_cause(place: Place, name: str):
    findings = CAUSES[name](place)
    made = {finding.name for finding in findings}
    assert name in made, [(finding.name, finding.seen) for finding in findings]
    if KINDS[name].outcome == "failure":
        assert status_of(findings) == KINDS[name].status
    if KINDS[name].ends:
        assert findings[-1].name == name


STATUSES: dict[str, Cause] = {"11": damaged, "12": too_new, "11 again": missing}


@pytest.mark.parametrize("name", STATUSES)
def test_a_start_is_refused_with_the_status_that_the_doctor_ends_with(place: Place, name: str):
    findings = STATUSES[name](place)
    started = ran("serve", "--data-dir", str(place.data_dir), "--bind", "127.0.0.1:0")
    assert started.returncode == status_of(findings) == int(name.split()[0])


TOKEN_FILES = {
    "blank": b" \n",
    "with a byte order mark": b"\xef\xbb\xbftoken",
    "with two lines": b"one\ntwo",
    "not there": None,
}


@pytest.mark.parametrize("name", TOKEN_FILES)
def test_a_token_file_that_cannot_be_meant_is_named(place: Place, name: str):
    path, data = place.directory / "token", TOKEN_FILES[name]
    if data is not None:
        path.write_bytes(data)
    (finding,) = place.look({"CONVMEM_HTTP_TOKEN_FILE": str(path)})
    assert finding.name == "settings-invalid"
    assert "CONVMEM_HTTP_TOKEN_FILE" in finding.change


def image(directory: Path) -> dict[str, Any]:
    """Everything of a directory that a look could change: names, bytes, modes and times."""
    found: dict[str, Any] = {}
    for path in sorted([directory, *directory.rglob("*")]):
        status = path.lstat()
        data = path.read_bytes() if stat.S_ISREG(status.st_mode) else b""
        name = path.relative_to(directory).as_posix()
        found[name] = (status.st_mode, status.st_uid, status.st_size, status.st_mtime_ns, data)
    return found


LEFT_ALONE: dict[str, Cause] = {
    "a store": of_a_store,
    "a killed daemon's": killed,
    "a torn log": torn,
    "a damaged log": damaged,
    "a damaged index": unfit_index,
    "no index": without_index,
    "nothing yet": never_written,
    "open to others": opened_to_others,
    "with tokens": with_a_token,
    "open tokens": open_tokens,
    "with a spool": spooled,
}


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_a_look_changes_nothing(place: Place, name: str):
    LEFT_ALONE[name](place)
    before = image(place.directory)
    assert place.look()
    assert image(place.directory) == before


def test_a_look_changes_nothing_of_a_running_daemon(place: Place):
    running = place.run()
    running.client("all").write("a")
    bind = {"CONVMEM_BIND": f"127.0.0.1:{running.port}"}
    place.look(bind)
    # The daemon itself may still move what it wrote; then two pictures in a row differ without a look between them.
    before = next(one for one in iter(lambda: image(place.directory), None) if one == image(place.directory))
    findings = place.look(bind)
    assert image(place.directory) == before
    assert {finding.kind.outcome for finding in findings} == {"ok"}
    assert running.client().write("b")["sequence"] == "2"


def test_no_lock_is_taken_by_a_look(place: Place, monkeypatch: pytest.MonkeyPatch):
    import fcntl

    def taken(*arguments: Any) -> None:
        raise AssertionError("a lock was taken")

    place.wreck()
    monkeypatch.setattr(fcntl, "flock", taken)
    monkeypatch.setattr(fcntl, "lockf", taken)
    assert place.look()


def test_the_log_of_a_killed_daemon_is_judged_with_what_its_index_had_not_moved_yet(place: Place):
    """The index says of entries in its WAL alone that they were acknowledged: their loss is damage, no torn end."""
    running = place.run()
    for number in range(3):
        running.client().write(f"message {number}")
    running.kill()
    assert (place.data_dir / "index-1.db-wal").stat().st_size > 0
    log = place.data_dir / "convmem.log"
    log.write_bytes(log.read_bytes()[:-7])
    findings = {finding.name: finding for finding in place.look()}
    assert "log-damaged" in findings


def test_where_the_system_does_not_tell_locks_the_socket_does(place: Place, monkeypatch: pytest.MonkeyPatch):
    running = place.run()
    monkeypatch.setattr(here, "LOCKS", place.directory / "nothing")
    made = {finding.name for finding in place.look({"CONVMEM_BIND": f"127.0.0.1:{running.port}"})}
    assert {"lock-held", "socket-ok", "port-ours", "log-in-use"} <= made


def test_the_verb_prints_what_to_change_and_ends_with_the_status_of_a_start(place: Place):
    damaged(place)
    done = ran("doctor", "--data-dir", str(place.data_dir), environment={"CONVMEM_BIND": "127.0.0.1:0"})
    assert done.returncode == 11
    (line,) = (line for line in done.stdout.splitlines() if "log-damaged" in line)
    outcome, name, seen, change = line.split("\t")
    assert (outcome, name) == ("failure", "log-damaged")
    assert "byte 0" in seen
    assert change == f"convmem salvage --to DIRECTORY --data-dir {place.data_dir}"
    facts = json.loads(ran("doctor", "--json", "--data-dir", str(place.data_dir)).stdout)
    assert [one["check"] for one in facts][:2] == ["runtime", "settings"]


def test_the_sdk_is_not_imported():
    program = (
        "import sys; from pathlib import Path; from convmem.cli import run;"
        " run(['doctor', '--data-dir', sys.argv[1]], {}, Path('/'));"
        " run(['doctor', 'http://127.0.0.1:1'], {}, Path('/'));"
        " print({'mcp', 'mcp_types', 'uvicorn'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "/nonexistent/data"], capture_output=True, text=True, timeout=30
    )
    assert done.stdout.splitlines()[-1] == "set()", done.stdout + done.stderr


def test_other_text_is_shown_harmless(place: Place):
    """What a table's directory is called is another's text, and a terminal would obey it."""
    listener = place.stack.enter_context(answering(lambda request: page("200 OK", b"", b"Server: \x1b[2Jx")))
    done = ran("doctor", f"http://127.0.0.1:{listener.port}")
    assert "\x1b" not in done.stdout
    assert "http-not-convmem" in done.stdout


def test_an_index_is_not_left_open(place: Place):
    wreck = place.wreck()
    place.look()
    with closing(apsw.Connection(str(wreck.directory / "index-1.db"))) as connection:
        connection.execute("BEGIN EXCLUSIVE")
