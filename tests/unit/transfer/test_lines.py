"""A record ends at a line feed and nowhere else, wherever the blocks of reading end."""

import pytest

from convmem.errors import Invalid
from convmem.limits import LINE_BYTES_MAX
from convmem.transfer import lines as lines_module
from convmem.transfer.lines import NOT_THIS, lines
from tests.support.filed import file

TEXT = "一\u2028二\u2029三\x85四\x1c五\x0b六\x0c七 日本🟡".encode()


def found(data: bytes) -> list[tuple[int, int, bytes]]:
    return [tuple(line) for line in lines(file(data))]


@pytest.mark.parametrize("block_bytes", [1, 2, 3, 7, 64, 1_000_000])
def test_lines_are_the_same_whatever_is_read_at_once(block_bytes: int, monkeypatch: pytest.MonkeyPatch):
    data = b"a\n\n" + TEXT + b"\r\n  \n" + TEXT * 3 + b"\nlast"
    expected = [
        (1, 0, b"a"),
        (3, 3, TEXT),
        (5, 3 + len(TEXT) + 5, TEXT * 3),
        (6, 3 + len(TEXT) + 6 + 3 * len(TEXT), b"last"),
    ]
    monkeypatch.setattr(lines_module, "BLOCK_BYTES", block_bytes)
    if block_bytes >= 4:  # how a file begins is seen in its first block
        assert found("\ufeff".encode() + data) == [(number, 3 + offset, line) for number, offset, line in expected]
    assert found(data) == expected
    for number, offset, line in found(data):
        assert data[offset : offset + len(line)] == line, number


def test_a_last_line_without_its_end_is_a_line_and_an_end_is_not_one_more():
    assert found(b"a") == [(1, 0, b"a")] == found(b"a\n") == found(b"a\r\n")
    assert found(b"") == found(b"\n \r\n\t\n") == found("\ufeff".encode()) == []


def test_a_byte_order_mark_inside_the_text_stays():
    assert found("a\n\ufeffb".encode()) == [(1, 0, b"a"), (2, 2, "\ufeffb".encode())]


@pytest.mark.parametrize(("beginning", "sentence"), NOT_THIS)
def test_another_encoding_or_an_archive_is_refused_by_name(beginning: bytes, sentence: str):
    with pytest.raises(Invalid, match=sentence.split(":")[0]) as refused:
        found(beginning + b"x" * 40)
    assert refused.value.details["line"] == 1


def test_a_line_over_its_bound_is_refused_by_its_number_before_all_of_it_is_read():
    assert len(found(b"a\n" + b"x" * LINE_BYTES_MAX + b"\nb")) == 3
    for rest in (b"", b"\n", b"x" * 3_000_000):
        with pytest.raises(Invalid) as refused:
            found(b"a\n" + b"x" * (LINE_BYTES_MAX + 1) + rest)
        assert refused.value.details["line"] == 2
