"""A store as a file of records: a manifest, then every live record by rising sequence, in pieces of some size.

What is written is one moment of the store, however long the reader takes: the caller's connection stands in a read
transaction. No record refers to one that is not in the file.
"""

from collections.abc import Iterator, Sequence

import apsw

from convmem.domain import Domain
from convmem.limits import EXPORT_PIECE_BYTES
from convmem.store.compaction import live
from convmem.transfer.manifest import manifest


def export(connection: apsw.Connection, domains: Sequence[Domain], at_ms: int) -> Iterator[bytes]:
    """Yield the file in pieces of whole lines, the manifest in the first."""
    encoders = {kind.event: kind.encode for domain in domains for kind in domain.record_types}
    records = sum(domain.records(connection) for domain in domains)
    waiting = [manifest(records=records, at_ms=at_ms)]
    size = count = 0
    for kept in live(connection, domains):
        encode = encoders.get(type(kept.event))
        if encode is None:
            continue  # what only this store needs, such as receipts
        line = encode(kept)
        waiting.append(line)
        size, count = size + len(line), count + 1
        if size >= EXPORT_PIECE_BYTES:
            yield b"\n".join(waiting) + b"\n"
            waiting, size = [], 0
    assert count == records, "the manifest counts what follows"
    if waiting:
        yield b"\n".join(waiting) + b"\n"
