"""A real daemon and its operator: compaction, checks and salvage from a terminal and over HTTP, while others work."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.support.commands import ran
from tests.support.daemons import Daemon, complaints, daemon
from tests.support.wrecks import SCRIPT, Wreck

pytestmark = pytest.mark.slow
TOKEN = {"CONVMEM_HTTP_TOKEN": "s3cret"}


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Daemon]:
    """A daemon that asks for a token, with messages written and deleted."""
    with daemon(tmp_path / "data", environment=TOKEN) as started:
        fill(started)
        yield started


def fill(running: Daemon) -> None:
    client = running.client("messages", authorization="Bearer s3cret")
    ids = [client.write(f"message {number} " + "x" * 500)["message_id"] for number in range(60)]
    for message_id in ids[::2]:
        client.call("delete_message", message_id=message_id)


def admin(running: Daemon, verb: str) -> list[dict[str, dict[str, object]]]:
    """The lines that a verb answers over TCP."""
    url = running.url.removesuffix("/mcp") + f"/admin/{verb}"
    answer = httpx.post(url, headers={"authorization": "Bearer s3cret"}, timeout=20)
    assert answer.status_code == 200, answer.text
    return [json.loads(line) for line in answer.text.split("\n")[:-1]]


def test_compaction_over_the_local_socket(running: Daemon):
    done = ran("compact", "--data-dir", str(running.data_dir))
    assert (done.returncode, done.stderr) == (0, "")
    assert "30 deleted records" in done.stdout
    assert "30 records live on in generation 2" in done.stdout
    assert complaints(running.data_dir) == []


def test_compaction_over_a_url_with_a_token(running: Daemon, tmp_path: Path):
    url = running.url.removesuffix("/mcp")
    done = ran("compact", "--url", url, "--json", environment={"CONVMEM_TOKEN": "s3cret"})
    assert (done.returncode, done.stderr) == (0, "")
    facts = json.loads(done.stdout)
    assert (facts["rebuilt"], facts["removed"], facts["live"]) == (True, 30, 30)
    (tmp_path / "token").write_text("s3cret\n")
    again = ran("compact", "--url", url, "--json", "--token-file", str(tmp_path / "token"))
    assert json.loads(again.stdout)["rebuilt"] is False
    refused = ran("compact", "--url", url)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "FORBIDDEN" in refused.stderr
    assert "s3cret" not in refused.stderr


def test_a_verb_tells_how_far_it_is(running: Daemon):
    *told, last = admin(running, "compact")
    assert last["result"]["rebuilt"] is True
    assert told
    for line in told:
        assert set(line) == {"progress"}
        assert set(line["progress"]) == {"done", "total", "message"}
    assert admin(running, "check")[-1] == {"result": {"violations": [], "leftovers": []}}


def test_an_argument_that_no_verb_has_is_refused_by_status(running: Daemon):
    url = running.url.removesuffix("/mcp")
    headers = {"authorization": "Bearer s3cret"}
    answer = httpx.post(f"{url}/admin/compact", json={"force": True}, headers=headers)
    assert (answer.status_code, answer.json()["error"]["field"]) == (400, "force")
    assert httpx.post(f"{url}/admin/compact").status_code == 401


def test_a_check_beside_a_daemon_that_compacts_and_writes_finds_nothing(running: Daemon):
    """The log changes its generation under the eyes of whoever checks; no look at it is a false alarm."""
    client = running.client("messages", authorization="Bearer s3cret")
    is_over = threading.Event()
    generations: list[object] = []

    def work() -> None:
        while not is_over.is_set():
            client.call("delete_message", message_id=client.write("soon gone")["message_id"])
            generations.append(admin(running, "compact")[-1]["result"]["generation"])

    worker = threading.Thread(target=work)
    worker.start()
    try:
        while len(generations) < 20:
            assert complaints(running.data_dir) == []
            assert admin(running, "check")[-1]["result"]["violations"] == []
    finally:
        is_over.set()
        worker.join()
    assert len(set(generations)) == len(generations)


def test_a_damaged_store_is_salvaged_and_served_again(tmp_path: Path):
    wreck = Wreck(tmp_path / "data")
    wreck.play(SCRIPT)
    frame = wreck.frames()[0]
    damaged = bytearray(wreck.log.read_bytes())
    damaged[frame.offset + 60] ^= 1
    wreck.log.write_bytes(damaged)
    wreck.drop_index()
    before = wreck.image()
    start = ran("serve", "--data-dir", str(wreck.directory), "--bind", "127.0.0.1:0")
    assert start.returncode == 11
    done = ran("salvage", "--data-dir", str(wreck.directory), "--to", str(tmp_path / "saved"))
    assert (done.returncode, done.stderr) == (3, "")
    assert "missing: entry 1\n" in done.stdout
    assert {name: data for name, data in wreck.image().items() if name in before} == before
    with daemon(tmp_path / "saved") as served:
        client = served.client("messages")
        assert len(client.history()) == 5
        client.write("and on it goes")
        assert len(client.history()) == 6
    assert complaints(tmp_path / "saved") == []


def test_salvage_beside_a_daemon_disturbs_nobody(running: Daemon, tmp_path: Path):
    client = running.client("messages", authorization="Bearer s3cret")
    done = ran("salvage", "--data-dir", str(running.data_dir), "--to", str(tmp_path / "saved"), "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["records"] == 30
    client.write("meanwhile")
    assert complaints(running.data_dir) == complaints(tmp_path / "saved") == []
