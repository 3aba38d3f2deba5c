"""Stores of messages in real directories, made to be damaged, and what must be left of them whatever was lost.

SCRIPT is a list of steps, one frame each in a log that was never compacted. `expected` replays it without those that
were lost: what speaks of a lost message is left out.
"""

import shutil
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from convmem.daemon import domains
from convmem.domain import Origin
from convmem.files import RealFiles
from convmem.inputs import checked
from convmem.messages.inputs import DeleteMessage, UpdateMessage, WriteMessage
from convmem.store import generation, log, opening
from convmem.store.compaction import Parts, Rewrite
from convmem.store.log import Frame, Reader
from convmem.store.shelf import FileShelf
from convmem.store.store import Store, Ticket
from tests.support.manual_clock import ManualClock

ORIGIN = Origin("local", "test")
SIZE_OF_A_STATE_FRAME = 700


class Step(NamedTuple):
    """Write, update or delete the message that was the `number`th to be written."""

    what: str
    number: int
    text: str = ""


SCRIPT = (
    *(Step("write", number) for number in range(4)),
    Step("update", 1),
    Step("delete", 2),
    *(Step("write", number) for number in range(4, 7)),
    Step("update", 5),
    Step("update", 1, "again"),
    Step("delete", 4),
    Step("write", 7),
)
# What may follow a compaction.
LATER = (Step("write", 8), Step("update", 0), Step("delete", 6), Step("write", 9))


@dataclass
class Wreck:
    """A directory with a store in it that nobody holds, and the ids of its messages by number."""

    directory: Path
    ids: dict[int, str] = field(default_factory=dict)
    clock: ManualClock = field(default_factory=ManualClock)

    @property
    def log(self) -> Path:
        return self.directory / log.NAME

    def open(self) -> Store:
        """Open the store as a daemon does."""
        files = RealFiles(self.directory)
        files.prepare()
        store, _ = opening.open_store(files, FileShelf(files), domains(), self.clock)
        store.catch_up(lambda done, total: None)
        return store

    def play(self, steps: Collection[Step], *, frames_of: int = 1, closes: bool = True) -> Store:
        """Commit the steps, so many a frame."""
        store, waiting = self.open(), list(steps)
        while waiting:
            batch, waiting = waiting[:frames_of], waiting[frames_of:]
            answers = store.commit([Ticket(self._command(step), ORIGIN) for step in batch])
            for step, answer in zip(batch, answers, strict=True):
                assert isinstance(answer, dict), answer
                self.ids[step.number] = answer["message_id"]
        if closes:
            store.close()
        return store

    def _command(self, step: Step) -> Any:
        text = content_of(step)
        if step.what == "write":
            arguments = {"session_id": "s", "role": "user", "content": text, "idempotency_key": f"{step}"}
            return checked(WriteMessage, arguments)
        if step.what == "update":
            return checked(UpdateMessage, {"message_id": self.ids[step.number], "content": text})
        return checked(DeleteMessage, {"message_id": self.ids[step.number]})

    def compact(self) -> None:
        """Make the next generation, whose state takes several frames."""
        files, store, before = RealFiles(self.directory), self.open(), generation.STATE_FRAME_BYTES
        generation.STATE_FRAME_BYTES = SIZE_OF_A_STATE_FRAME
        try:
            parts = Parts(files, FileShelf(files), domains(), self.clock)
            rewrite = Rewrite(parts, store.log, lambda: store.log.end)
            rewrite.prepare()
            rewrite.finish(store)
            rewrite.clean()
        finally:
            generation.STATE_FRAME_BYTES = before
            store.close()

    def copy(self, directory: Path) -> "Wreck":
        """The same store in another directory, to be damaged there."""
        shutil.copytree(self.directory, directory)
        return Wreck(directory, self.ids, self.clock)

    def frames(self) -> list[Frame]:
        """The frames of the log, which is whole."""
        file = RealFiles(self.directory).open_to_read(log.NAME)
        reader = Reader(file, end=file.size())
        first = reader.header(0)
        found = list(reader.walk(0, getattr(first, "generation", 1)))
        file.close()
        return [frame for frame in found if isinstance(frame, Frame)]

    def drop_index(self) -> "Wreck":
        for path in self.directory.glob("index-*"):
            path.unlink()
        return self

    def messages(self) -> dict[str, str]:
        """What the store holds: contents by id. It is opened as a daemon does, and closed."""
        store = self.open()
        found: Any = store._index.connection.execute("SELECT message_id, content FROM messages_message").fetchall()
        store.close()
        return dict(found)

    def image(self) -> Mapping[str, bytes]:
        """Every file, byte for byte."""
        return {path.name: path.read_bytes() for path in self.directory.iterdir()}


def content_of(step: Step) -> str:
    """What a message says after a step."""
    return f"{step.what} {step.number} {step.text}" + "x" * 200


def expected(
    ids: Mapping[int, str], lost: Collection[int], script: Collection[Step] = SCRIPT
) -> tuple[dict[str, str], list[int]]:
    """Contents by id, and the sequences that are left out, if the entries `lost` (from 1 on) cannot be read."""
    contents: dict[str, str] = {}
    left_out: list[int] = []
    for sequence, step in enumerate(script, 1):
        message_id = ids[step.number]
        if sequence in lost:
            continue
        if step.what != "write" and message_id not in contents:
            left_out.append(sequence)
        elif step.what == "delete":
            del contents[message_id]
        else:
            contents[message_id] = content_of(step)
    return contents, left_out


def runs(sequences: Collection[int]) -> list[tuple[int, int]]:
    """Sequences as spans: 3, 4, 5, 9 -> (3, 5), (9, 9)."""
    found: list[tuple[int, int]] = []
    for sequence in sorted(sequences):
        if found and found[-1][1] == sequence - 1:
            found[-1] = (found[-1][0], sequence)
        else:
            found.append((sequence, sequence))
    return found


def flipped(data: bytes, offset: int, size: int) -> bytes:
    """One bit in the middle of a stretch."""
    at = offset + size // 2
    return data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :]


def flipped_at_its_head(data: bytes, offset: int, size: int) -> bytes:
    """One bit of a header."""
    return flipped(data, offset + 28, 4)


def zeroed(data: bytes, offset: int, size: int) -> bytes:
    return data[:offset] + bytes(size) + data[offset + size :]


def removed(data: bytes, offset: int, size: int) -> bytes:
    return data[:offset] + data[offset + size :]


def shortened(data: bytes, offset: int, size: int) -> bytes:
    """The end of the stretch is missing, and what follows has moved up."""
    return data[: offset + size - 5] + data[offset + size :]


def overwritten(data: bytes, offset: int, size: int) -> bytes:
    """Something strange in the place of the stretch, with magics in it."""
    return data[:offset] + (b"\xffcvm strange " * size)[:size] + data[offset + size :]


def grown(data: bytes, offset: int, size: int) -> bytes:
    """The same, longer than the stretch was."""
    return data[:offset] + b"\xffcvm strange " * size + data[offset + size :]


Damage = Callable[[bytes, int, int], bytes]
DAMAGES: dict[str, Damage] = {
    "a flipped bit": flipped,
    "a flipped bit in the header": flipped_at_its_head,
    "zeros": zeroed,
    "a frame too short": shortened,
    "strange bytes": overwritten,
}
# What moves the rest of the log up, so that it does not stand where the index had seen it.
MOVES: dict[str, Damage] = {"a frame too long": grown}


def places(wreck: Wreck) -> Iterator[tuple[Frame, set[int]]]:
    """Each frame of a log of batches, and the sequences of its entries."""
    for frame in wreck.frames():
        first = frame.header.sequence
        yield frame, set(range(first, first + frame.header.entry_count))
