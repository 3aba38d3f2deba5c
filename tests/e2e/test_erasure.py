"""What was deleted is gone: from every read and search at once, and after compaction from every byte of every file.

Nothing is asked of the store here: each file under the data directory is read as it lies there, and searched for the
text in every form in which something might have kept it.
"""

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from convmem.text import fold
from tests.support.daemons import Daemon, RawClient, complaints, daemon

pytestmark = pytest.mark.slow

# What is written and then deleted or replaced: each word stands in one place only.
LONG = "".join(f"line {number} of the Xylophone-Ledger-5150 ends here. " for number in range(6_000))
DELETED: dict[str, dict[str, Any]] = {
    "Zephyr-Quokka-7731": {"content": "The password is Zephyr-Quokka-7731, remember it."},
    "秘密の味噌汁レシピ七七三一": {"content": "これは秘密の味噌汁レシピ七七三一です。"},
    "ＷｉｄｅＯｗｌ": {"content": "A wide ＷｉｄｅＯｗｌ and nothing else."},
    "Çédille-Wörter": {"content": "Çédille-Wörter"},
    "Xylophone-Ledger-5150": {"content": LONG},
    "SummaryNarwhal": {"content": "s", "metadata": {"summary": "about the SummaryNarwhal"}},
    "tag-pangolin": {"content": "t", "metadata": {"tags": ["tag-pangolin", "other"]}},
    "project-axolotl": {"content": "p", "metadata": {"project": "project-axolotl"}},
    "call-okapi": {"content": "c", "metadata": {"tool_call_id": "call-okapi"}},
    "session-wombat": {"content": "x", "session_id": "session-wombat"},
    "keyed-ibex": {"content": "keyed-ibex", "idempotency_key": "the key"},
}
REPLACED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "OldContentLemur": ({"content": "OldContentLemur " * 50}, {"content": "new content"}),
    "古い要約カピバラ": (
        {"content": "r", "metadata": {"summary": "古い要約カピバラ"}},
        {"metadata": {"summary": "new summary"}},
    ),
    "old-tag-tapir": ({"content": "r", "metadata": {"tags": ["old-tag-tapir"]}}, {"metadata": {"tags": ["new"]}}),
}
IN_A_TAIL = "TornTailMarmot"
WORDS = (*DELETED, *REPLACED)
# What lives must be there, in the same files that are searched.
LIVING = ("Living-Heron-1", "生きている鷺", "new content")


def forms(word: str) -> set[bytes]:
    """A word as it might lie in a file: as it is, folded for the search, escaped as JSON, in other encodings."""
    texts = {word, word.lower(), word.upper(), word.casefold(), fold(word)}
    escaped = {json.dumps(text)[1:-1] for text in texts}
    found = {text.encode() for text in texts | escaped | {text.replace("\\u", "\\U") for text in escaped}}
    return found | {text.encode(encoding) for text in texts for encoding in ("utf-16-le", "utf-16-be")}


def places(directory: Path, word: str) -> set[str]:
    """The names of the files in which a word stands in any form."""
    files = [path for path in directory.rglob("*") if path.is_file()]
    assert files
    return {path.name for path in files if any(form in path.read_bytes() for form in forms(word))}


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def stored(client: RawClient) -> None:
    """Write everything, take away what is to go; what lives is among it."""
    for word in LIVING[:2]:
        client.write(word)
    deleted = [client.write(**written)["message_id"] for written in DELETED.values()]
    replaced = [client.write(**before)["message_id"] for before, _ in REPLACED.values()]
    pointing = {"relations": [{"type": "after", "message_id": deleted[0]}]}
    client.write("points at what goes", metadata=pointing)
    for message_id, (_, change) in zip(replaced, REPLACED.values(), strict=True):
        client.call("update_message", message_id=message_id, **change)
    for message_id in deleted:
        client.call("delete_message", message_id=message_id)


def shown(client: RawClient) -> str:
    """All that the tools show, as text."""
    pages = [client.call("read_messages", view="sessions", limit=500, max_bytes=8_000_000)]
    pages += client.history("s")
    pages.append(client.call("read_messages", view="export", limit=500, max_bytes=8_000_000))
    pages += [client.call("search_messages", query=word, limit=100) for word in WORDS]
    return json.dumps(pages, ensure_ascii=False)


def nothing_is_shown(client: RawClient) -> None:
    for word in WORDS:
        found = client.call("search_messages", query=word, limit=100, match="exact")
        assert found["results"] == [], word
    text = shown(client)
    for word in WORDS:
        assert word not in text
    for word in LIVING:
        assert word in text


def with_a_torn_tail(running: Daemon, directory: Path) -> None:
    """Stop, leave a torn end behind as a power cut would, and start again: it is cut off and kept."""
    assert running.stop()[0] == 0
    with (directory / "convmem.log").open("ab") as log:
        log.write(f"half a frame with {IN_A_TAIL}".encode())
    running.start()


def held_though_deleted(running: Daemon) -> list[str]:
    """Files that have lost their names and are kept alive by the daemon."""
    assert running.process is not None
    held: list[str] = []
    for path in Path(f"/proc/{running.process.pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed since it was listed
            held.append(os.readlink(path))
    return [target for target in held if target.endswith("(deleted)") and str(running.data_dir) in target]


def test_after_compaction_no_byte_of_what_was_deleted_is_in_any_file(tmp_path: Path) -> None:
    with daemon(tmp_path) as running:
        client = running.client("all")
        stored(client)
        nothing_is_shown(client)
        with_a_torn_tail(running, tmp_path)
        client = running.client("all")
        nothing_is_shown(client)
        for word in WORDS:
            assert "convmem.log" in places(tmp_path, word), "the search of this test finds what is there"
        assert any(name.endswith(".tail") for name in places(tmp_path, IN_A_TAIL))

        facts = client.call("rebuild_index")
        assert facts["rebuilt"] is True
        assert facts["removed"] == len(DELETED)
        assert facts["dangling_removed"] == 1
        for word in (*WORDS, IN_A_TAIL):
            assert places(tmp_path, word) == set(), word
        # Which files SQLite keeps beside its own depends on who has them open just now.
        left = {name.removesuffix("-shm").removesuffix("-wal") for name in names(tmp_path)}
        assert left == {"convmem.log", "convmem.sock", "index-2.db", "search-2.db", "store.lock", "tables"}
        # A scrub that was in the middle of the old log lets go of it at its next step.
        asked = 0
        while held_though_deleted(running):
            client.call("get_system_health")
            asked += 1
            assert asked < 1_000, held_though_deleted(running)
        nothing_is_shown(client)
        for word in LIVING:
            assert "convmem.log" in places(tmp_path, word)
        assert complaints(tmp_path) == []

        assert running.stop()[0] == 0
        for word in (*WORDS, IN_A_TAIL):
            assert places(tmp_path, word) == set(), word
        running.start()
        nothing_is_shown(running.client("all"))
        assert running.client("all").call("rebuild_index")["rebuilt"] is False


def test_what_is_deleted_after_one_compaction_is_gone_after_the_next(tmp_path: Path) -> None:
    with daemon(tmp_path) as running:
        client = running.client("all")
        kept = client.write(f"{LIVING[0]} {LIVING[1]}")["message_id"]
        for word, written in DELETED.items():
            message_id = client.write(**written)["message_id"]
            client.call("rebuild_index")
            assert places(tmp_path, word), "it lives"
            client.call("delete_message", message_id=message_id)
            assert client.call("rebuild_index")["rebuilt"] is True
            assert places(tmp_path, word) == set(), word
        assert client.call("read_messages", view="content", message_id=kept)["eof"] is True


def test_a_killed_compaction_leaves_nothing_that_the_next_does_not_take_away(tmp_path: Path) -> None:
    """Killed while it works, it may leave its staging files; the next start and the next compaction are rid of them."""
    with daemon(tmp_path) as running:
        stored(running.client("all"))
        running.kill()
        for name in ("staging-2.log", "staging-scratch.db", "index-2.db", "index-2.db-wal"):
            (tmp_path / name).write_bytes(f"left behind: {IN_A_TAIL}".encode())
        running.start()
        running.client("all").call("rebuild_index")
        for word in (*WORDS, IN_A_TAIL):
            assert places(tmp_path, word) == set(), word
