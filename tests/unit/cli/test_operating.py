"""cli/operating: the work is done by whoever holds the store, and here only where nobody does."""

import fcntl
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import click
import pytest
import typer

from convmem.cli.asking import CallFailed
from convmem.cli.operating import operate
from convmem.cli.progress import Tell
from convmem.cli.start import Start
from convmem.config import Settings
from convmem.errors import Conflict, SettingInvalid, StoreLocked
from convmem.holding import take
from convmem.transport import http
from convmem.transport.gate import Settings as HTTPSettings
from tests.support.served import served_in_thread
from tests.support.toy import Toy, toy_catalog


def context(environment: Mapping[str, str] | None = None) -> typer.Context:
    return typer.Context(click.Command("test"), obj=Start(environment or {}, Path("/")))


def locking(settings: Settings, tell: Tell) -> Mapping[str, Any]:
    """What an own store does: take the lock, or say who has it."""
    with closing(take(settings)):
        tell(1, 2, "at work")
        return {"own": str(settings.data_dir)}


def never(settings: Settings, tell: Tell) -> Mapping[str, Any]:
    raise AssertionError("somebody else holds the store")


def asked(data_dir: Path | None, own: Any, verb: str = "echo", **more: Any) -> Mapping[str, Any]:
    known = {"data_dir": None if data_dir is None else str(data_dir), "url": None, "token_file": None, **more}
    environment = known.pop("environment", None)
    return operate(context(environment), verb, {"a": 1}, own=own, **known)


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "convmem.log").touch()
    return tmp_path / "data"


def test_whoever_listens_on_the_local_socket_does_it(data_dir: Path):
    with served_in_thread(http.build(toy_catalog, Toy(), HTTPSettings()), data_dir / "convmem.sock"):
        assert asked(data_dir, never) == {"echo": {"a": 1}}


def test_where_nobody_holds_the_store_it_is_done_here(data_dir: Path):
    assert asked(data_dir, locking) == {"own": str(data_dir)}


def test_another_machine_does_it_by_url_with_the_token_of_the_environment(data_dir: Path):
    with served_in_thread(http.build(toy_catalog, Toy(), HTTPSettings(token=b"geheim"))) as port:
        url = f"http://127.0.0.1:{port}"
        assert asked(None, never, url=url, environment={"CONVMEM_TOKEN": "geheim"}) == {"echo": {"a": 1}}


def test_a_holder_without_a_socket_is_asked_at_the_address_in_its_lock(data_dir: Path):
    with (
        served_in_thread(http.build(toy_catalog, Toy(), HTTPSettings())) as port,
        open(data_dir / "store.lock", "w", encoding="utf-8") as lock,
    ):
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write(f'{{"pid": 7, "url": "http://127.0.0.1:{port}/mcp"}}')
        lock.flush()
        assert asked(data_dir, locking) == {"echo": {"a": 1}}


def test_a_holder_that_cannot_be_reached_is_named(data_dir: Path):
    with open(data_dir / "store.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write('{"pid": 7}')
        lock.flush()
        with pytest.raises(StoreLocked, match='"pid": 7'):
            asked(data_dir, locking)


def test_a_refusal_of_the_holder_is_the_error_itself_and_nothing_is_tried_here(data_dir: Path):
    toy = Toy()
    toy.refusal = Conflict("somebody was faster")
    with (
        served_in_thread(http.build(toy_catalog, toy, HTTPSettings()), data_dir / "convmem.sock"),
        pytest.raises(Conflict, match="somebody was faster"),
    ):
        asked(data_dir, never, "refuse-late")


def test_work_makes_no_store_unless_it_is_meant_to(tmp_path: Path):
    with pytest.raises(CallFailed, match="there is no store"):
        asked(tmp_path / "none", never)
    assert asked(tmp_path / "none", locking, needs_store=False) == {"own": str(tmp_path / "none")}


def test_a_token_file_goes_with_a_url(data_dir: Path):
    with pytest.raises(SettingInvalid, match="--token-file goes with --url"):
        asked(data_dir, never, token_file="token")
