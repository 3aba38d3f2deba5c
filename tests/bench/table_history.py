"""What a large row that is changed often leaves in its table's file: python -m tests.bench.table_history [CHANGES]

Seen elsewhere: one row of 178 KB changed 949 times left 222 MB. Goals here, for records of JSON such as agents write: 4
MB of row and history together, a change within 100 ms though it packs a chunk, any version read within 200 ms. Words
drawn at random, which hardly pack at all, are the worst case.
"""

import json
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from convmem.domain import Origin
from convmem.store import sqlite
from convmem.tables import history
from tests.bench.load import table

ROW_BYTES, CHANGES = 178_000, 949
WORDS = (
    "state",
    "open",
    "done",
    "owner",
    "note",
    "ready",
    "again",
    "parser",
    "build",
    "fails",
    "under",
    "load",
    "while",
)
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"


def record(chance: random.Random, number: int) -> dict[str, object]:
    """An entry such as an agent adds to a list of a row."""
    note = " ".join(chance.choices(WORDS, k=12))
    return {"id": number, "state": chance.choice(["open", "done"]), "at": 1_790_000_000 + 37 * number, "note": note}


def records(chance: random.Random, changes: int) -> list[str]:
    """The JSON of a row of entries after each change: one entry differs from before."""
    entries: list[dict[str, object]] = []
    while len(json.dumps({"entries": entries})) < ROW_BYTES:
        entries += [record(chance, len(entries) + number) for number in range(20)]
    states = []
    for number in range(changes):
        entries[chance.randrange(len(entries))] = record(chance, 100_000 + number)
        states.append(json.dumps({"title": "t", "entries": entries}))
    return states


def words(chance: random.Random, changes: int) -> list[str]:
    """The JSON of a row of random words after each change: forty letters differ from before."""
    text = " ".join("".join(chance.choices(LETTERS, k=6)) for _ in range(ROW_BYTES // 7))
    states = []
    for number in range(changes):
        at = chance.randrange(len(text) - 40)
        text = text[:at] + "".join(chance.choices(LETTERS, k=40)) + text[at + 40 :]
        states.append(json.dumps({"title": "t", "n": number, "body": text}))
    return states


def measure(kind: Callable[[random.Random, int], list[str]], changes: int, directory: Path) -> list[str]:
    """A line of the table: what is there after all changes, and how long changes and reads took."""
    connection = sqlite.connect(directory / f"{kind.__name__}.db")
    history.prepare(connection)
    states = kind(random.Random(1), changes)
    taken, before = [], None
    for number, state in enumerate(states):
        begun = time.perf_counter()
        with connection:
            op: history.Op = "update" if before else "create"
            history.append(connection, "t", "r", op, state, before, Origin("local", "http"), number)
        taken.append(1000 * (time.perf_counter() - begun))
        before = state
    read = []
    for version in (1, len(states) // 2, len(states)):
        begun = time.perf_counter()
        found = history.at_version(connection, "t", "r", version)
        read.append(1000 * (time.perf_counter() - begun))
        assert found is not None
        assert found.data_json == states[version - 1]
    used = (connection.pragma("page_count") - connection.pragma("freelist_count")) * connection.pragma("page_size")
    (raw,) = connection.execute("SELECT sum(length(data_json)) FROM _row_history").fetchone() or (0,)
    (packed,) = connection.execute("SELECT sum(length(blob)) FROM _row_history_archive").fetchone() or (0,)
    taken.sort()
    megabytes = [f"{(used + ROW_BYTES) / 1e6:.2f}", f"{raw / 1e6:.2f}", f"{packed / 1e6:.2f}"]
    return [kind.__name__, *megabytes, f"{taken[len(taken) // 2]:.1f}", f"{taken[-1]:.0f}", f"{max(read):.0f}"]


def main() -> None:
    """Print the table."""
    changes = int(sys.argv[1]) if len(sys.argv) > 1 else CHANGES
    with tempfile.TemporaryDirectory() as directory:
        lines = [measure(kind, changes, Path(directory)) for kind in (records, words)]
    table(
        "one large row, changed often",
        ["row", "MB in all", "MB recent", "MB packed", "change ms", "worst ms", "read ms"],
        lines,
    )


if __name__ == "__main__":
    main()
