"""What the disk refuses beside a table's file (a schema, a copy), said as an error of ours."""

from collections.abc import Iterator
from contextlib import contextmanager

from convmem.errors import DiskFault, StorageFull
from convmem.files import NO_SPACE
from convmem.limits import STORAGE_FULL_RETRY_MS


@contextmanager
def refused_by_disk(name: str) -> Iterator[None]:
    """Raise StorageFull or DiskFault for an OSError inside; `name` is that of the file, without a path."""
    try:
        yield
    except OSError as error:
        if error.errno in NO_SPACE:
            sentence = "the disk took no more; the table is as it was"
            raise StorageFull(sentence, retry_after_ms=STORAGE_FULL_RETRY_MS) from error
        raise DiskFault(f"the disk refused it ({error.strerror or 'without a reason'})", path=name) from error
