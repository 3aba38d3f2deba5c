"""setting_values: a text is meant exactly, or refused with what is wrong with it."""

from pathlib import Path

import pytest

from convmem import setting_values as reading
from convmem.limits import RETENTION_DAYS_MAX, TOKEN_BYTES_MAX
from convmem.setting_values import UNITS_S, Found


def found(text: str, base: Path = Path("/base")) -> Found:
    return Found(text, "environment", base)


@pytest.mark.parametrize(
    ("text", "length_ms"),
    [
        ("1s", 1_000),
        ("90s", 90_000),
        ("30m", 1_800_000),
        ("6h", 21_600_000),
        ("1d", 86_400_000),
        ("366d", 31_622_400_000),
    ],
)
def test_a_length_of_time_is_a_whole_number_and_a_unit(text: str, length_ms: int):
    assert reading.duration_ms(text) == length_ms


@pytest.mark.parametrize(
    "text", ["", "6", "h", "0s", "-1h", "+1h", "1.5h", "1h30m", "6 h", "6H", "1w", "٣h", "1e3s", "01h"]
)
def test_a_length_of_time_that_could_mean_anything_else_is_refused(text: str):
    with pytest.raises(ValueError, match="90s, 30m, 6h or 1d"):
        reading.duration_ms(text)


@pytest.mark.parametrize("text", ["367d", "999999999h"])
def test_a_length_of_time_has_a_bound(text: str):
    with pytest.raises(ValueError, match="longer than 366d"):
        reading.duration_ms(text)


@pytest.mark.parametrize("text", ["1s", "59s", "90s", "1m", "90m", "6h", "25h", "1d", "366d"])
def test_a_length_of_time_is_shown_as_it_would_be_written(text: str):
    assert reading.duration_text(reading.duration_ms(text)) == text


def test_a_whole_number_of_greater_units_is_shown_in_those():
    assert reading.duration_text(reading.duration_ms("120s")) == "2m"
    assert reading.duration_text(reading.duration_ms("48h")) == "2d"
    assert list(UNITS_S.values()) == sorted(UNITS_S.values())


def test_a_path_starts_where_it_is_written(monkeypatch: pytest.MonkeyPatch):
    assert reading.path(found("a/b")) == Path("/base/a/b")
    assert reading.path(found("/a/b")) == Path("/a/b")
    monkeypatch.setenv("HOME", "/someone")
    assert reading.path(found("~/b")) == Path("/someone/b")


@pytest.mark.parametrize("text", ["", " "])
def test_a_path_that_names_nothing_is_refused(text: str):
    with pytest.raises(ValueError, match="is empty"):
        reading.path(found(text))


def test_a_choice_is_one_of_its_words_exactly():
    read = reading.choice("text", "json")
    assert read(found("json")) == "json"
    for text in ("", "JSON", "jso", "text,json"):
        with pytest.raises(ValueError, match="is none of text, json"):
            read(found(text))


def test_a_list_keeps_its_order_and_drops_what_comes_again():
    read = reading.each(str.lower)
    assert read(found("b, A,b ,a")) == ("b", "a")
    assert read(found("  ")) == ()


def test_a_text_alone_is_read_by_whoever_reads_texts():
    assert reading.one(int)(found("7")) == 7


@pytest.mark.parametrize(("data", "token"), [(b"t", b"t"), (b"t\n", b"t"), (b"t\r\n", b"t"), (b"t\xf8k", b"t\xf8k")])
def test_a_token_file_loses_one_line_end(tmp_path: Path, data: bytes, token: bytes):
    (tmp_path / "token").write_bytes(data)
    assert reading.token_file(found("token", tmp_path)) == token


@pytest.mark.parametrize(
    "data", [b"", b" ", b"\xef\xbb\xbf", b" t", b"t ", b"a\nb", b"t\n\n", b"\x7f", b"a" * (TOKEN_BYTES_MAX + 1)]
)
def test_a_token_that_no_client_could_send_is_refused(data: bytes):
    with pytest.raises(ValueError, match=r"blank|could send it|longer than"):
        reading.token(data)


def test_a_token_file_that_is_not_there_or_cannot_be_read_is_named(tmp_path: Path):
    with pytest.raises(ValueError, match="nowhere is not there"):
        reading.token_file(found("nowhere", tmp_path))
    with pytest.raises(ValueError, match="cannot be read"):
        reading.token_file(found(".", tmp_path))


@pytest.mark.parametrize("text", ["1", "30", str(RETENTION_DAYS_MAX)])
def test_days_are_a_whole_number(text: str):
    assert reading.days(text) == int(text)


@pytest.mark.parametrize(
    "text", ["", "0", "-1", "+1", "1.0", "030", "30d", " 30", "٣", str(RETENTION_DAYS_MAX + 1), "9" * 12]
)
def test_days_that_could_mean_anything_else_are_refused(text: str):
    with pytest.raises(ValueError, match=f"no number of days from 1 to {RETENTION_DAYS_MAX}"):
        reading.days(text)
