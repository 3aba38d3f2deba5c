"""Files of records and compaction, each beside its floor: python -m tests.bench.records [MESSAGES] [DIRECTORY]

Floors of the same run: copying the same file and flushing it (`cp` and `fsync`), and msgspec alone reading or writing
the same lines. Goals here: export 50,000 messages of 300 characters a second, import 20,000 into the log alone and
6,000 with its index, both under 200 MB resident at a million messages; 100,000 messages folded into a fresh index in
10 s; a first answer within 2 s after a clean stop at a million; the writer held 200 ms at most while another generation
takes over at 100,000.
"""

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from convmem import config, daemon, files, messages
from convmem.clock import SystemClock
from convmem.domain import Origin
from convmem.messages.lines import _Line
from convmem.store import sqlite
from convmem.store.generation import Draft
from convmem.store.made import Made
from convmem.store.shelf import FileShelf
from convmem.transfer.intake import Intake
from convmem.transfer.lines import lines
from convmem.transfer.scan import scan
from tests.bench.load import table
from tests.bench.start import _message, begin

CHARACTERS = 300
DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
DOMAINS = (messages.DOMAIN,)


class Spent(NamedTuple):
    """What a command took: seconds, and the most memory it held at once."""

    seconds: float
    resident_mb: float


def ulid(number: int) -> str:
    """The identifier of a number."""
    return "01HF7YAT0000000000" + "".join(DIGITS[number // 32**place % 32] for place in range(7, -1, -1))


def fill(path: Path, count: int) -> None:
    """A file of `count` records of 300 characters, as an export writes them."""
    line = (
        '{"type":"message","message_id":"%s","session_id":"session-%d","timestamp":%d,"updated_at":%d,"revision":1,'
        '"role":"user","content":"%s","metadata":{"tags":[],"memory_tier":"mid","memory_kind":"conversation",'
        '"importance":0,"relations":[],"source_message_ids":[]},"origin":{"device":"laptop","transport":"http",'
        '"client":"agent/1"}}\n'
    )
    texts = [_message(number).content[:CHARACTERS].ljust(CHARACTERS, "x") for number in range(997)]
    with path.open("w", encoding="utf-8") as file:
        file.write(f'{{"type":"manifest","format":"convmem-jsonl","version":1,"records":{count}}}\n')
        for number in range(count):
            at_ms = 1_700_000_000_000 + number
            file.write(line % (ulid(number), number % 500, at_ms, at_ms, texts[number % 997]))


def timed(work: Callable[[], Any]) -> float:
    """Seconds that the work takes."""
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def copied(source: Path, target: Path) -> float:
    """Copying a file and flushing the copy."""

    def copy() -> None:
        shutil.copyfile(source, target)
        files.flush(target)

    return timed(copy)


def decoded(path: Path) -> float:
    """msgspec alone reading every line into its struct."""
    decoder = msgspec.json.Decoder(_Line)

    def read() -> None:
        with path.open("rb") as file:
            next(file)
            for line in file:
                decoder.decode(line)

    return timed(read)


def encoded(path: Path, count: int) -> float:
    """msgspec alone writing as many lines from their structs."""
    decoder, encoder = msgspec.json.Decoder(_Line), msgspec.json.Encoder()
    with path.open("rb") as file:
        next(file)
        some = [decoder.decode(line) for line, _ in zip(file, range(10_000), strict=False)]
    return timed(lambda: [encoder.encode(line) and None for line in some]) * count / len(some)


def ran(*arguments: str) -> Spent:
    """A verb in a process of its own."""
    begun = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "convmem", *arguments], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0
    return Spent(time.perf_counter() - begun, usage.ru_maxrss / 1000)


def into_the_log(path: Path, directory: Path) -> None:
    """An import without its index: both readings, and the log of the next generation on the disk."""
    directory.mkdir()
    disk = files.RealFiles(directory)
    shelf = FileShelf(disk)
    told: Callable[[int, int], None] = lambda done, total: None  # noqa: E731
    found = scan(files.regular(path), DOMAINS, sqlite.connect_to_build(directory / "records.db"), told)
    empty = shelf.open(1)
    empty.execute(messages.DOMAIN.create)
    intake = Intake(found, DOMAINS, "reject", told)
    intake.meet(empty)
    draft = Draft(disk, shelf, DOMAINS, SystemClock(), 2)
    draft.keep(intake.records(empty, 0))
    draft.end_state(found.records, Made())
    draft.sync()


async def longest_wait_ms(directory: Path) -> tuple[float, float, float]:
    """Compact while one caller writes: seconds it took, the longest write and the median one beside it, in ms."""
    waits: list[float] = []
    settings = config.load({"data_dir": str(directory)}, {}, None)
    async with daemon.alone(settings) as engine:
        access = engine.access(Origin("local", "bench"))
        first = await access.write(_message(1))
        await engine.access(Origin("local", "bench")).write(
            messages.inputs.DeleteMessage(message_id=first["message_id"])
        )
        begun = time.perf_counter()
        compaction = asyncio.ensure_future(access.rebuild())
        while not compaction.done():
            waits.append(1000 * await _timed_write(access))
        assert (await compaction)["rebuilt"]
        took_s = time.perf_counter() - begun
    return took_s, max(waits), sorted(waits)[len(waits) // 2]


async def _timed_write(access: Any) -> float:
    begun = time.perf_counter()
    await access.write(_message(7))
    return time.perf_counter() - begun


def measure(count: int, directory: Path) -> list[list[str]]:
    """All figures, as rows of a table."""
    source, target, data_dir = directory / "records.jsonl", directory / "out.jsonl", directory / "data"
    fill(source, count)
    copy_s, decode_s, encode_s = copied(source, directory / "copy"), decoded(source), encoded(source, count)
    arguments = ("--data-dir", str(data_dir))
    log_s = timed(lambda: into_the_log(source, directory / "log"))
    imported = ran("import", str(source), *arguments)
    exported = ran("export", str(target), *arguments)
    sizes = f"{source.stat().st_size / 1e6:.0f} MB"
    for ours, theirs in zip(lines(files.regular(source)), lines(files.regular(target)), strict=True):
        assert ours.number == 1 or ours.data == theirs.data
    process, _, _, first_s = begin(data_dir)
    process.terminate()
    process.wait()
    for index in data_dir.glob("index-*"):
        index.unlink()
    folded = ran("search", "nothing that stands there", *arguments)
    compacted_s, longest_ms, median_ms = asyncio.run(longest_wait_ms(data_dir))
    rate = "{:,.0f}/s".format
    return [
        ["cp and fsync", rate(count / copy_s), sizes, ""],
        ["msgspec alone, reading", rate(count / decode_s), "", ""],
        ["msgspec alone, writing", rate(count / encode_s), "", ""],
        [
            "export",
            rate(count / exported.seconds),
            f"{exported.seconds / copy_s:.1f} x cp, {exported.seconds / encode_s:.1f} x msgspec,"
            f" {exported.resident_mb:.0f} MB resident",
            "50,000/s, 200 MB",
        ],
        [
            "import, log alone",
            rate(count / log_s),
            f"{log_s / copy_s:.1f} x cp, {log_s / decode_s:.1f} x msgspec",
            "20,000/s",
        ],
        [
            "import with its index",
            rate(count / imported.seconds),
            f"{imported.seconds / copy_s:.1f} x cp, {imported.seconds / decode_s:.1f} x msgspec,"
            f" {imported.resident_mb:.0f} MB resident",
            "6,000/s, 200 MB",
        ],
        ["first answer after a clean stop", f"{first_s:.2f} s", "", "2 s"],
        [
            "folded into a fresh index, and one search",
            f"{folded.seconds:.1f} s",
            f"{rate(count / folded.seconds)}, {folded.resident_mb:.0f} MB resident",
            "10 s for 100,000",
        ],
        [
            "compaction under one writer",
            f"{compacted_s:.1f} s",
            f"longest write {longest_ms:.0f} ms, median {median_ms:.1f} ms",
            "200 ms",
        ],
    ]


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    directory = Path(tempfile.mkdtemp(dir=sys.argv[2] if len(sys.argv) > 2 else None))
    try:
        rows = measure(count, directory)
    finally:
        shutil.rmtree(directory)
    table(f"{count:,} messages of {CHARACTERS} characters", ["what", "figure", "beside", "goal"], rows)


if __name__ == "__main__":
    main()
