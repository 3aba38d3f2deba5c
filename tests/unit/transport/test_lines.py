"""transport/lines: what comes in pieces becomes lines, and nothing that was read is lost to whoever asks next."""

import asyncio
import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convmem.limits import BODY_BYTES_MAX
from convmem.transport import lines
from convmem.transport.lines import Lines, Mark, Output
from tests.support.waiting import until


@contextmanager
def pipe() -> Iterator[tuple[int, int]]:
    """The two ends of a pipe."""
    incoming, outgoing = os.pipe()
    try:
        yield incoming, outgoing
    finally:
        for descriptor in (incoming, outgoing):
            try:
                os.close(descriptor)
            except OSError:
                continue


async def all_lines(reading: Lines) -> list[bytes | Mark]:
    found: list[bytes | Mark] = []
    while (line := await reading.line()) is not Mark.END:
        found.append(line)
    return found


RAW: dict[bytes, list[bytes | Mark]] = {
    b"": [],
    b"\n": [],
    b"a": [b"a"],
    b"a\n": [b"a"],
    b"a\r\nb\r\n": [b"a", b"b"],
    b" \t a \r\n": [b"a"],
    b"\xef\xbb\xbfa\n\xef\xbb\xbfb": [b"a", b"b"],
    b"\xef\xbb\xbf\n\xef\xbb\xbf": [],
    b"\n\n a\n\n": [b"a"],
    b"a\x0bb\x0cc\x1cd\x85e\xe2\x80\xa8f\n": [b"a\x0bb\x0cc\x1cd\x85e\xe2\x80\xa8f"],
}


@pytest.mark.parametrize("raw", RAW, ids=ascii)
async def test_lines_are_what_stands_between_line_feeds(raw: bytes):
    with pipe() as (incoming, outgoing):
        os.write(outgoing, raw)
        os.close(outgoing)
        assert await all_lines(Lines(incoming)) == RAW[raw]


@settings(max_examples=150, deadline=None)
@given(
    texts=st.lists(st.binary(max_size=12).map(lambda raw: b"x" + raw.replace(b"\n", b"") + b"y"), max_size=12),
    cuts=st.lists(st.integers(0, 200), max_size=20),
    interrupts=st.sets(st.integers(0, 30)),
)
def test_nothing_is_lost_however_it_comes_and_whoever_interrupts(
    texts: list[bytes], cuts: list[int], interrupts: set[int]
):
    raw = b"".join(text + b"\n" for text in texts)

    async def read() -> list[bytes | Mark]:
        found: list[bytes | Mark] = []
        with pipe() as (incoming, outgoing):
            reading = Lines(incoming)
            ends = [0, *sorted(cut % (len(raw) + 1) for cut in cuts), len(raw)]

            async def write() -> None:
                for number, (start, end) in enumerate(itertools.pairwise(ends)):
                    os.write(outgoing, raw[start:end])
                    for turn in range(3):
                        await asyncio.sleep(0)
                        if 3 * number + turn in interrupts:
                            reading.interrupt()
                os.close(outgoing)

            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(write())
                while (line := await reading.line()) is not Mark.END:
                    found += [] if line is Mark.INTERRUPTED else [line]
        return found

    assert asyncio.run(asyncio.wait_for(read(), 20)) == texts


async def test_an_interruption_ends_a_wait_that_goes_on():
    with pipe() as (incoming, outgoing):
        reading = Lines(incoming)
        async with asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(reading.line())
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            reading.interrupt()
        assert waiting.result() is Mark.INTERRUPTED
        os.write(outgoing, b"a\n")
        assert await reading.line() == b"a"


async def test_behind_a_stop_stand_the_lines_that_were_read_and_no_others():
    with pipe() as (incoming, outgoing):
        reading = Lines(incoming)
        os.write(outgoing, b"a\nb\nc")
        assert await reading.line() == b"a"
        reading.stop()
        os.write(outgoing, b"d\n")
        assert await all_lines(reading) == [b"b"]


async def test_a_line_that_is_too_long_is_marked_and_the_next_one_read(tmp_path):
    path = tmp_path / "lines"
    longest = b"x" * BODY_BYTES_MAX
    path.write_bytes(longest + b"\n" + longest + b"x\nnext\n" + longest + b"xx")
    descriptor = os.open(path, os.O_RDONLY)
    try:
        found = await all_lines(Lines(descriptor))
    finally:
        os.close(descriptor)
    assert found == [longest, Mark.TOO_LONG, b"next", Mark.TOO_LONG]


async def test_an_input_that_cannot_be_read_has_ended():
    with pipe() as (incoming, outgoing):
        os.write(outgoing, b"a\nhalf")
        reading = Lines(incoming)
        assert await reading.line() == b"a"
        os.close(incoming)
        os.close(outgoing)
        # A descriptor that is closed under us: what was read before is still a line.
        assert await all_lines(reading) == [b"half"]


async def test_a_line_goes_out_whole_or_not_at_all_and_nobody_reading_ends_nothing():
    with pipe() as (incoming, outgoing):
        output = Output(outgoing)
        await output.line('{"x":"a\u2028b\u2029c"}'.encode())
        assert os.read(incoming, 100) == b'{"x":"a\\u2028b\\u2029c"}\n'
        os.close(incoming)
        await output.line(b"lost")
        await output.line(b"lost too")


async def test_of_lines_that_may_be_dropped_none_waits_behind_another():
    with pipe() as (incoming, outgoing):
        output = Output(outgoing)
        os.set_blocking(incoming, False)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(output.line(b"x" * 500_000))
            await until(output._turn.locked)
            await output.line_if_idle(b"dropped")
            received = b""
            while not received.endswith(b"\n"):
                with suppress(BlockingIOError):
                    received += os.read(incoming, 65_536)
                await asyncio.sleep(0)
        assert received == b"x" * 500_000 + b"\n"
        await output.line_if_idle(b"idle")
        assert os.read(incoming, 100) == b"idle\n"


def test_stdout_is_taken_on_the_descriptor():
    assert lines.FIRST_PRIVATE_DESCRIPTOR > 2
