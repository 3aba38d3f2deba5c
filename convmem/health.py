"""How the daemon is: one word, the reasons in sentences, and the facts that need no index.

What health says must be true in every phase, so nothing here asks the store anything: it reads what the parts of the
engine last said of themselves.
"""

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Literal, Protocol

from convmem import __version__
from convmem.limits import READERS
from convmem.store import sqlite
from convmem.store.shelf import SUFFIXES, index_name, search_name

if TYPE_CHECKING:
    from convmem.engine import Engine

Status = Literal["ok", "degraded", "stopping", "failed"]
# Each with a cache: the writer's, the readers' to the index and its tables of search, the indexer's to both.
CONNECTIONS = 1 + 2 * READERS + 2
ENDED: Mapping[str, Status] = {"stopping": "stopping", "failed": "failed"}


class Beside(Protocol):
    """Work that goes on beside a store for as long as it is in use."""

    async def run(self) -> None:
        """Work until cancelled."""

    def reasons(self) -> list[str]:
        """Why it is not simply well, in sentences; empty if it is."""


def reasons(engine: "Engine") -> list[str]:
    """Why the store is not simply well, in sentences; empty if it is."""
    facts = engine.writer.facts if engine.writer is not None else None
    found = []
    if engine.phase in ("opening", "folding"):
        found.append(f"the index is being made from the log: {engine.folded.done} of {engine.folded.total} bytes")
    if engine.phase in ENDED:
        found.append(f"the store is {engine.phase.value}")
    if facts is not None and facts.full_since_ms is not None:
        found.append("the disk is full: writes are refused until one fits, reads go on")
    if engine.scrub.damage is not None:
        found.append(engine.scrub.damage)
    if engine.indexer.trouble is not None:
        found.append(engine.indexer.trouble)
    mounting = () if engine.mounting is None else (engine.mounting,)
    return found + [reason for part in (engine.backups, *engine.beside, *mounting) for reason in part.reasons()]


def status(engine: "Engine") -> Status:
    """How the store is, in one word."""
    return ENDED.get(engine.phase) or ("degraded" if reasons(engine) else "ok")


def health(engine: "Engine") -> Mapping[str, Any]:
    """Facts for get_system_health that need no index."""
    facts: dict[str, Any] = {
        "status": status(engine),
        "reasons": reasons(engine),
        "version": __version__,
        "uptime_ms": int(engine.clock.monotonic_ms() - engine.started_ms),
        "recovery": asdict(engine.recovery),
        "spools": engine.spools.facts(),
    }
    if engine.mounting is not None:
        facts["tables"] = engine.mounting.facts()
    return facts if engine.writer is None else facts | _of_the_store(engine)


def _of_the_store(engine: "Engine") -> dict[str, Any]:
    writer, files = engine.writer, engine.files
    assert writer is not None
    facts, counters = writer.facts, files.counters
    name = index_name(facts.generation)
    return {
        "sequence": str(facts.sequence),
        "generation": str(facts.generation),
        "log_bytes": facts.log_bytes,
        "log_verified_bytes": engine.scrub.verified_bytes,
        "index_bytes": sum(files.size(name + suffix) for suffix in SUFFIXES),
        "search_bytes": sum(files.size(search_name(facts.generation) + suffix) for suffix in SUFFIXES),
        "search": {
            "in_use": engine.reading is not None and engine.reading.has_search,
            "sequence": str(engine.indexer.sequence or 0),
            "lag": _lag(engine, facts.sequence),
            "found": engine.indexer.found,
        },
        "io": {
            "log": {"writes": counters.writes, "bytes": counters.bytes, "flushes": counters.flushes},
            "index": {"writes": facts.index_writes, "bytes": facts.index_bytes, "flushes": facts.index_flushes},
        },
        "mailbox": {"waiting": writer.depth, "bytes": writer.bytes_held},
        "bytes_held": writer.bytes_held + CONNECTIONS * sqlite.CACHE_KIB * 1024,
        "last_error": facts.last_error or "",
        "last_compaction_ms": engine.last_compaction_ms,
        "last_proven_restore_ms": engine.backups.last_proven_restore_ms,
    }


def _lag(engine: "Engine", sequence: int) -> int | None:
    """How many changes the tables of search are behind, as far as anybody has counted; None if there are none."""
    known = engine.indexer.sequence
    return engine.indexer.lag if known is None else sequence - known
