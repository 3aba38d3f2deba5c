"""What is copied into a backup, and how bytes come there: hashed while they are read, under a name only once whole."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from hashlib import sha256
from pathlib import PurePath
from typing import NamedTuple, Protocol

import apsw

from convmem.domain import Domain
from convmem.errors import CallerError, DiskFault, Stopping
from convmem.files import File, Files
from convmem.limits import BUSY_RETRY_MS, MIB
from convmem.store.compaction import Tell
from convmem.store.generation import STAGING
from convmem.store.log import Position
from convmem.store.manifest import Manifest, Part

BLOCK_BYTES = 1 * MIB


class Digest(Protocol):
    """A hash in the making."""

    def update(self, data: bytes, /) -> None: ...
    def hexdigest(self) -> str: ...


class TablePart(NamedTuple):
    """A file of the user's tables: its name in a data directory, and what yields it, as it is at one moment.

    `opened()` raises a CallerError for a file that is damaged or taken away.
    """

    name: str
    opened: Callable[[], AbstractContextManager[File]]


class Source(NamedTuple):
    """A store to copy: its directory, its log, how far that is copied, and an index that shows just that much."""

    files: Files
    log: File
    generation: int
    end: Position
    store_id: str
    connection: apsw.Connection
    domains: Sequence[Domain]
    # None: nobody can know which there are now.
    tables: Sequence[TablePart] | None = ()


@dataclass
class Copy:
    """One backup in the making: what it is copied from and to, and the manifest that is there already."""

    source: Source
    target: Files
    known: Manifest | None
    tell: Tell
    is_stopped: Callable[[], bool]
    copied_bytes: int = 0

    def hashed(self, file: File, size: int) -> Digest:
        """The hash of the first `size` bytes, which may be fewer."""
        digest = sha256()
        for offset in range(0, size, BLOCK_BYTES):
            refuse_if_stopped(self.is_stopped)
            digest.update(file.read(offset, min(BLOCK_BYTES, size - offset)))
        return digest

    def add(self, source: File, target: File, start: int, size: int, digest: Digest) -> None:
        """Copy the bytes from `start` to `size`, and sync."""
        for offset in range(start, size, BLOCK_BYTES):
            refuse_if_stopped(self.is_stopped)
            block = source.read(offset, min(BLOCK_BYTES, size - offset))
            digest.update(block)
            target.write(offset, block)
            self.copied_bytes += len(block)
            self.tell(offset + len(block), size, "copying")
        target.sync()

    def replace(self, source: File, name: str, size: int) -> str:
        """Copy a whole file and give it its name; return the hash."""
        digest = sha256()
        with closing(self.target.stage(STAGING + name)) as file:
            self.add(source, file, 0, size, digest)
        self.target.rename(STAGING + name, name)
        return digest.hexdigest()

    def small(self, name: str, file: File) -> Part:
        """A file that is replaced as a whole when it changes; its copy is named by its content."""
        size = file.size()
        content, path = self.hashed(file, size).hexdigest(), PurePath(name)
        prefix = "table" if "/" in name else path.stem
        copied = f"{prefix}-{content[:16]}{path.suffix}"
        known = self.known.part(name) if self.known is not None else None
        if known is not None and known.sha256 == content and known.file == copied and self.target.exists(copied):
            return Part(name=name, file=copied, bytes=size, sha256=content)
        return Part(name=name, file=copied, bytes=size, sha256=self.replace(file, copied, size))

    def tables(self, kept_back: Callable[[str], None]) -> list[Part]:
        """The files of tables. What the backup has of one that cannot be read stays there, and somebody is told."""
        parts: list[Part] = []
        if self.source.tables is None:
            kept_back("tables: their directory cannot be used")
            known_parts = () if self.known is None else self.known.parts
            return [part for part in known_parts if "/" in part.name and self.target.exists(part.file)]
        for table in self.source.tables:
            refuse_if_stopped(self.is_stopped)
            try:
                with table.opened() as file:
                    parts.append(self.small(table.name, file))
            except (CallerError, DiskFault) as error:
                known = self.known.part(table.name) if self.known is not None else None
                if known is not None and self.target.exists(known.file):
                    parts.append(known)
                kept_back(f"{table.name}: {error.message}")
        return parts


def refuse_if_stopped(is_stopped: Callable[[], bool]) -> None:
    """Stopping once whoever runs this is going down."""
    if is_stopped():
        raise Stopping("the daemon is stopping; what was there is as it was", retry_after_ms=BUSY_RETRY_MS)
