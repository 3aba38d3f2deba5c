"""A process to be killed: a real writer over a real log and real table files, under the load of a crowd.

    python -m tests.support.table_load DIRECTORY RUN

Each line on stdout is a fact that the process knew: `put FILE KEY` and `taken FILE KEY` and `noted TEXT` once that was
answered, `taking FILE KEY` before it is asked for.
"""

import asyncio
import os
import sys
from pathlib import Path

from convmem.clock import SystemClock
from convmem.domain import Origin
from convmem.files import RealFiles
from convmem.store import opening
from convmem.store.shelf import FileShelf
from convmem.store.store import Store
from convmem.store.table_files import TableFiles
from convmem.store.writer import Writer
from tests.support.notebook import NOTEBOOK, Add
from tests.support.toy_table import TABLES, Put, Take, shelf

FILES, CROWD = 3, 12
ORIGIN = Origin("local", "test")


def word_of(key: str) -> str:
    """The word under a key: long enough now and then that a command takes many pages."""
    return key * (1 + hash_of(key) % 7) if hash_of(key) % 11 else key * 2_000


def hash_of(key: str) -> int:
    return sum(key.encode())


def open_store(directory: Path) -> Store:
    """Open and fold what a process left, as the next start would."""
    files = RealFiles(directory)
    files.prepare()
    store, _ = opening.open_store(files, FileShelf(files), [NOTEBOOK], SystemClock())
    store.catch_up(lambda done, total: None)
    return store


def say(*words: str) -> None:
    os.write(1, (" ".join(words) + "\n").encode())


async def client(writer: Writer, directory: Path, name: str) -> None:
    number = 0
    while True:
        number += 1
        file, key = f"{(number + hash_of(name)) % FILES}.db", f"{name}-{number}"
        target = shelf(directory / file)
        await writer.write(Put(target, key, word_of(key)), ORIGIN)
        say("put", file, key)
        if number % 4 == 0:
            say("taking", file, key)
            await writer.write(Take(target, key), ORIGIN)
            say("taken", file, key)
        if number % 5 == 0:
            await writer.write(Add((key,)), ORIGIN)
            say("noted", key)


async def main(directory: Path, run: str) -> None:
    writer = Writer(open_store(directory), TableFiles([TABLES], SystemClock()))
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(writer.run())
        for number in range(CROWD):
            tasks.create_task(client(writer, directory, f"{run}-{number}"))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
