"""What is remembered, as one JSON document in the data directory: for a person to keep, read or take elsewhere.

    {"format": "convmem-memory", "version": 1, "exported_at": ms, "preferences": […], "lessons": […], "profile": […],
     "interactions": […]}

The records are as tools show them, but whole, and without what only this store knows them by (number, sequence). It is
written in pieces from one moment of the store: a long history takes no memory. To bring memory into another store there
is the export of the command line, whose lines an import takes back.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import apsw
import msgspec

from convmem.domain import Access, Answer
from convmem.limits import EXPORT_PIECE_BYTES, INT64_MAX
from convmem.memory import queries
from convmem.memory.facts import lesson_facts, preference_facts, section_facts
from convmem.memory.inputs import ExportMemory
from convmem.memory.interactions import interaction_facts
from convmem.messages.queries import captured

FORMAT, VERSION = "convmem-memory", 1
LOCAL = ("number", "sequence")


async def export_memory(access: Access, ask: ExportMemory) -> Answer:
    """{filename, size_bytes, sha256, preview, counts{list: records}}. Conflict if the name is taken."""
    counts: dict[str, int] = {}
    exported_at = access.now_ms()

    def pieces(connection: apsw.Connection) -> Iterator[bytes]:
        return document(connection, exported_at, counts, with_interactions=ask.include_interactions)

    saved = await access.save_export(ask.filename, pieces)
    said = ", ".join(f"{name} {count}" for name, count in counts.items())
    text = f"Exported to {saved['filename']} ({saved['size_bytes']:,} bytes, SHA-256 {saved['sha256']}): {said}."
    return Answer({**saved, "counts": counts}, text)


def document(
    connection: apsw.Connection, exported_at: int, counts: dict[str, int], *, with_interactions: bool
) -> Iterator[bytes]:
    """The document in pieces of about EXPORT_PIECE_BYTES; `counts` says in the end how many records of each list."""
    lists: dict[str, Callable[[], Iterable[Mapping[str, Any]]]] = {
        "preferences": lambda: (preference_facts(found) for found in queries.preferences(connection)),
        "lessons": lambda: (lesson_facts(found) for found in queries.lessons(connection)),
        "profile": lambda: (section_facts(found) for found in queries.sections(connection)),
    }
    if with_interactions:
        newest = captured(connection, kind=None, limit=INT64_MAX)
        lists["interactions"] = lambda: (interaction_facts(message.facts()) for message in newest)
    about = {"format": FORMAT, "version": VERSION, "exported_at": exported_at}
    piece = bytearray(msgspec.json.encode(about)[:-1])
    for name, records in lists.items():
        piece += b',"%s":[' % name.encode()
        counts[name] = 0
        for facts in records():
            kept = {field: value for field, value in facts.items() if field not in LOCAL}
            piece += (b",\n" if counts[name] else b"\n") + msgspec.json.encode(kept)
            counts[name] += 1
            if len(piece) >= EXPORT_PIECE_BYTES:
                yield bytes(piece)
                piece.clear()
        piece += b"]"
    yield bytes(piece + b"}\n")
