"""hooks/lines: a line is an event, or it is passed over and spoils no other."""

import json

import pytest

from convmem.hooks.lines import NO_EVENT, line_of, sorted_out, time_of
from convmem.limits import SPOOL_AGE_MS_MAX, SPOOL_LINE_BYTES_MAX

NOW_MS = 1_700_000_000_000


def event(number: int, at: int = NOW_MS) -> bytes:
    return json.dumps({"event_id": f"e{number}", "at": at}).encode()


def test_events_come_in_order_and_so_many():
    data = b"".join(event(number) + b"\n" for number in range(5))
    assert sorted_out(data, 3, NOW_MS, is_all=True) == ((event(0), event(1), event(2)), 0, 3 * len(event(0)) + 3)
    assert sorted_out(data, 9, NOW_MS, is_all=True) == (tuple(map(event, range(5))), 0, len(data))
    assert sorted_out(b"", 9, NOW_MS, is_all=True) == ((), 0, 0)


@pytest.mark.parametrize(
    "spoiled",
    [
        b"nonsense",
        b'{"event_id": "e1", "at"',
        b"\0" * 500,
        b"\xff\xfe",
        b"[]",
        b'{"event_id": "e1"}',
        b'{"at": "yesterday"}',
        b'{"at": 1, "at": 2}',
        json.dumps({"at": NOW_MS, "x": "y" * SPOOL_LINE_BYTES_MAX}).encode(),
        event(1, NOW_MS - SPOOL_AGE_MS_MAX - 1),
        line_of(event(1), NOW_MS - SPOOL_AGE_MS_MAX - 1).strip(),
        b'{"at": 1, "spooled_at": "today"}',
        NO_EVENT.strip(),
    ],
)
def test_a_line_that_holds_no_event_is_counted_and_spoils_no_other(spoiled: bytes):
    data = event(0) + b"\n" + spoiled + b"\n" + event(2) + b"\n"
    assert sorted_out(data, 9, NOW_MS, is_all=True) == ((event(0), event(2)), 1, len(data))


def test_a_blank_line_is_nothing():
    data = b"\n" + event(0) + b"\n\r\n" + event(1) + b"\n"
    assert sorted_out(data, 9, NOW_MS, is_all=True) == ((event(0), event(1)), 0, len(data))


def test_a_last_line_without_its_end_was_never_finished():
    data = event(0) + b"\n" + event(1)
    assert sorted_out(data, 9, NOW_MS, is_all=True) == ((event(0),), 1, len(data))
    assert sorted_out(data, 9, NOW_MS, is_all=False) == ((event(0),), 0, len(event(0)) + 1)


def test_a_line_that_is_longer_than_what_is_read_at_once_is_passed_over():
    data = b"x" * 100
    assert sorted_out(data, 9, NOW_MS, is_all=False) == ((), 1, len(data))


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b'{"at": "x"}', b'{"event_id": "e"}'])
def test_what_holds_no_event_has_no_time(text: bytes):
    assert time_of(text) is None
    assert time_of(event(0)) == NOW_MS


def test_how_long_an_event_may_wait_counts_from_when_it_was_spooled_and_it_is_sent_as_it_was():
    old = b'{"event_id":"e1","at":7,"content":"\xe0\xb8\x81 \\n ,\\"spooled_at\\":5}"}'
    line = line_of(old, NOW_MS - SPOOL_AGE_MS_MAX)
    assert line.count(b"\n") == 1
    assert time_of(line) == 7
    assert sorted_out(line, 9, NOW_MS, is_all=True) == ((old,), 0, len(line))
    assert sorted_out(line, 9, NOW_MS + 1, is_all=True) == ((), 1, len(line))
