"""lines: whatever pieces they come in and whoever asks for them, lines come whole, in order and once; none blocks."""

import asyncio
import fcntl
import os
import select
import socket
import subprocess
import sys
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convmem.limits import BODY_BYTES_MAX
from convmem.transport import lines
from convmem.transport.lines import Lines, Mark, Output
from tests.support.source import REPOSITORY
from tests.support.waiting import PATIENCE_S, until


class Pipe(NamedTuple):
    """What is written to `to` comes out of `come`."""

    come: int
    to: int


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    made = Pipe(*os.pipe())
    yield made
    for descriptor in made:
        close(descriptor)


def close(descriptor: int) -> None:
    """Close it unless the test has."""
    try:
        os.close(descriptor)
    except OSError:
        return


async def rest(found: Lines) -> list[bytes | Mark]:
    """All that there is up to the end."""
    come: list[bytes | Mark] = []
    while (line := await found.line()) is not Mark.END:
        come.append(line)
    return come


async def waits(found: Lines) -> asyncio.Task[bytes | Mark]:
    """A task that waits for a line that is not there yet."""
    task = asyncio.create_task(found.line())
    for _ in range(5):
        await asyncio.sleep(0)
    assert not task.done()
    return task


TOLERATED: dict[bytes, list[bytes | Mark]] = {
    b"": [],
    b"\n\n\r\n \t\r\n": [],
    b"a\nb\n": [b"a", b"b"],
    b"a\r\nb": [b"a", b"b"],
    b"\xef\xbb\xbfa\n\xef\xbb\xbf\r\n\xef\xbb\xbf b\n": [b"a", b"b"],
    b" a b \t\n": [b"a b"],
    b"a\rb\n": [b"a\rb"],
    b"\x00\n\xff\xfe\n": [b"\x00", b"\xff\xfe"],
    "a\u2028b\u0085c\n".encode(): ["a\u2028b\u0085c".encode()],
    b"\xef\xbb\xbf": [],
}


@pytest.mark.parametrize("text", TOLERATED, ids=ascii)
async def test_marks_ends_and_blanks_around_a_line_are_no_part_of_it(pipe: Pipe, text: bytes):
    os.write(pipe.to, text)
    os.close(pipe.to)
    assert await rest(Lines(pipe.come)) == TOLERATED[text]


async def test_a_line_comes_as_soon_as_it_is_whole(pipe: Pipe):
    found = Lines(pipe.come)
    task = await waits(found)
    os.write(pipe.to, b"{}")
    for _ in range(20):
        await asyncio.sleep(0)
    assert not task.done()
    os.write(pipe.to, b"\n[")
    assert await task == b"{}"


@pytest.mark.parametrize("room", [-1, 0, 1])
async def test_a_line_beyond_the_bound_is_skipped_and_told_of(pipe: Pipe, monkeypatch: pytest.MonkeyPatch, room: int):
    monkeypatch.setattr(lines, "BODY_BYTES_MAX", 10)
    text = b"x" * (10 - room)
    os.write(pipe.to, b"before\n" + text + b"\nbehind\n" + text)
    os.close(pipe.to)
    expected = text if room >= 0 else Mark.TOO_LONG
    assert await rest(Lines(pipe.come)) == [b"before", expected, b"behind", expected]


async def test_a_line_beyond_the_bound_is_not_kept(pipe: Pipe, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(lines, "BODY_BYTES_MAX", 10)
    found = Lines(pipe.come)
    task = await waits(found)
    for _ in range(100):
        os.write(pipe.to, b"x" * 1000)
        await until(lambda: not select.select([pipe.come], [], [], 0)[0])
        await asyncio.sleep(0)
        assert len(found._pending) <= 10
    os.write(pipe.to, b"\n")
    assert await task is Mark.TOO_LONG


async def test_an_interrupt_ends_the_wait_and_takes_nothing(pipe: Pipe):
    found = Lines(pipe.come)
    task = await waits(found)
    os.write(pipe.to, b"half")
    found.interrupt()
    assert found.is_interrupted
    assert await task is Mark.INTERRUPTED
    assert not found.is_interrupted
    os.write(pipe.to, b" and half\n")
    assert await found.line() == b"half and half"


async def test_an_interrupt_comes_before_the_lines_that_were_read(pipe: Pipe):
    found = Lines(pipe.come)
    os.write(pipe.to, b"a\nb\nc\n")
    assert await found.line() == b"a"
    found.interrupt()
    found.interrupt()
    assert [await found.line() for _ in range(3)] == [Mark.INTERRUPTED, b"b", b"c"]


async def test_a_stop_keeps_the_lines_that_were_read_and_no_other(pipe: Pipe):
    found = Lines(pipe.come)
    os.write(pipe.to, b"a\nb\nc")
    assert await found.line() == b"a"
    found.stop()
    os.write(pipe.to, b"d\ne\n")
    assert await rest(found) == [b"b"]
    assert await found.line() is Mark.END


async def test_a_stop_ends_the_wait(pipe: Pipe):
    found = Lines(pipe.come)
    task = await waits(found)
    found.stop()
    assert await task is Mark.END


@pytest.mark.parametrize("turns", range(5))
@pytest.mark.parametrize("mark", [Mark.INTERRUPTED, Mark.END])
async def test_a_wait_is_ended_without_any_input_whenever_that_is_asked_for(pipe: Pipe, mark: Mark, turns: int):
    found = Lines(pipe.come)
    task = asyncio.create_task(found.line())
    for _ in range(turns):
        await asyncio.sleep(0)
    if mark is Mark.END:
        found.stop()
    else:
        found.interrupt()
    assert await asyncio.wait_for(task, PATIENCE_S) is mark


class Step(NamedTuple):
    """What happens next: bytes come, the reader is interrupted, or a line is asked for."""

    what: str
    data: bytes = b""


STEPS = st.lists(
    st.one_of(
        st.builds(Step, st.just("come"), st.text("ab \r\n", max_size=12).map(str.encode)),
        st.sampled_from([Step("interrupt"), Step("ask"), Step("turn")]),
    ),
    max_size=30,
)


@given(STEPS, st.booleans())
def test_whatever_the_pieces_and_whenever_it_is_interrupted_nothing_is_lost(steps: list[Step], is_stopped: bool):
    asyncio.run(interrupted(steps, is_stopped=is_stopped))


async def interrupted(steps: list[Step], *, is_stopped: bool) -> None:
    pipe, come, task = Pipe(*os.pipe()), list[bytes | Mark](), None
    found, written, interrupts = Lines(pipe.come), b"", 0
    try:
        for step in steps:
            if step.what == "come":
                os.write(pipe.to, step.data)
                written += step.data
            elif step.what == "interrupt":
                interrupts += not found.is_interrupted
                found.interrupt()
            elif step.what == "turn":
                await asyncio.sleep(0)
            elif task is None:
                task = asyncio.create_task(found.line())
            if task is not None and task.done():
                come.append(task.result())
                task = None
        if is_stopped:
            found.stop()
        os.close(pipe.to)
        if task is not None:
            come.append(await task)
        come += await rest(found) if Mark.END not in come else []
    finally:
        close(pipe.come)
        close(pipe.to)
    whole = [trimmed for line in written.split(b"\n") if (trimmed := line.strip(b" \t\r"))]
    lost_to_the_end = [line for line in come if type(line) is bytes]
    assert come.count(Mark.INTERRUPTED) == interrupts
    assert lost_to_the_end == (whole[: len(lost_to_the_end)] if is_stopped else whole)


async def test_input_that_breaks_is_an_end():
    ours, theirs = socket.socketpair()
    found = Lines(ours.fileno())
    task = await waits(found)
    theirs.close()
    assert await task is Mark.END
    number = ours.fileno()
    ours.close()
    # A descriptor that is not there is no reason to fail either.
    assert await Lines(number).line() is Mark.END


async def test_a_wait_that_is_cancelled_watches_nothing_any_more(pipe: Pipe):
    found = Lines(pipe.come)
    task = await waits(found)
    task.cancel()
    await asyncio.wait([task])
    assert not asyncio.get_running_loop().remove_reader(pipe.come)
    os.write(pipe.to, b"a\n")
    assert await found.line() == b"a"


async def test_the_descriptors_stay_as_the_program_that_shares_them_left_them(pipe: Pipe):
    await waits(Lines(pipe.come))
    await Output(pipe.to).line(b"a")
    assert not any(fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_NONBLOCK for descriptor in pipe)


async def drained(descriptor: int, until_bytes: int) -> bytes:
    """Read that much, and let others run meanwhile."""
    read = b""
    while len(read) < until_bytes:
        await until(lambda: select.select([descriptor], [], [], 0)[0])
        read += os.read(descriptor, 65_536)
    return read


async def test_lines_are_written_whole_and_one_after_the_other(pipe: Pipe):
    output = Output(pipe.to)
    texts = [bytes([letter]) * 200_000 for letter in b"abc"]
    writing = [asyncio.create_task(output.line(text)) for text in texts]
    assert (await drained(pipe.come, 600_003)).split(b"\n") == [*texts, b""]
    await asyncio.wait(writing)


async def test_separators_that_some_take_for_line_ends_are_escaped(pipe: Pipe):
    await Output(pipe.to).line("a\u2028b\u2029c\u0085".encode())
    assert os.read(pipe.come, 100) == b"a\\u2028b\\u2029c\xc2\x85\n"


async def test_what_is_told_by_the_way_is_dropped_while_nobody_reads(pipe: Pipe):
    output = Output(pipe.to)
    writing = asyncio.create_task(output.line(b"x" * 200_000))
    await until(lambda: not output._descriptor.is_ready())
    await output.line_if_idle(b"dropped")
    assert await drained(pipe.come, 200_001) == b"x" * 200_000 + b"\n"
    await writing
    await output.line_if_idle(b"told")
    assert os.read(pipe.come, 100) == b"told\n"


async def test_a_reader_that_is_gone_holds_up_nobody(pipe: Pipe):
    output = Output(pipe.to)
    writing = asyncio.create_task(output.line(b"x" * 200_000))
    await until(lambda: not output._descriptor.is_ready())
    os.close(pipe.come)
    await writing
    await output.line(b"more")
    await output.line_if_idle(b"more")


def test_stdout_is_taken_away_from_whoever_prints():
    code = (
        "import os, subprocess, sys\nfrom convmem.transport import lines\nstreams = lines.claim()\n"
        "print('stray', flush=True)\nos.write(1, b'stray')\nsubprocess.run(['echo', 'stray'])\n"
        "assert streams.incoming == 0 and not os.get_inheritable(streams.outgoing)\n"
        "os.write(streams.outgoing, b'protocol')"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, timeout=20)
    assert (done.returncode, done.stdout) == (0, b"protocol")
    assert done.stderr.count(b"stray") == 3


def test_a_line_may_be_as_long_as_a_request_over_http():
    assert lines.BODY_BYTES_MAX == BODY_BYTES_MAX
