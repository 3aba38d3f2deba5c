"""cli/journal: one line an event, and nothing in it hides."""

import io
import json
import logging
import os
from collections.abc import Iterator

import pytest

from convmem.cli import journal

NASTY = "a\nb\x1b[31mc\u202ed\u2066e\u2028f\u0085g\x00h\ufeffi\U000e0041j\udc80k"


@pytest.fixture(autouse=True)
def _root_logger() -> Iterator[None]:
    """Give the process's own handlers back after each test."""
    handlers, level = logging.root.handlers[:], logging.root.level
    yield
    logging.root.handlers[:] = handlers
    logging.root.setLevel(level)


def test_what_could_hide_or_act_is_shown_as_its_escape():
    shown = journal.visible(NASTY)
    assert shown.isprintable()
    assert shown.startswith(r"a\nb\x1b[31mc\u202ed\u2066e\u2028f\x85g\x00h")


@pytest.mark.parametrize("text", ["plain", "日本🟡 é", "ฉันชอบกินข้าวผัด", "👩‍👩‍👧", "עברית", r"a\nb"])
def test_ordinary_text_of_any_script_stays_as_it_is(text: str):
    assert journal.visible(text) == text


def test_in_json_the_escapes_leave_the_value_equal():
    text = NASTY.replace("\udc80", "")
    shown = journal.visible_json(json.dumps({"text": text}, ensure_ascii=False))
    assert shown.isprintable()
    assert json.loads(shown) == {"text": text}


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_an_event_is_one_line_whatever_it_quotes(log_format: str):
    stream = io.StringIO()
    journal.begin(log_format, stream)
    logging.getLogger("convmem").warning("refused %s", NASTY)
    assert stream.getvalue().count("\n") == 1
    assert stream.getvalue().rstrip("\n").isprintable()


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_a_trace_stays_on_the_line_of_its_event(log_format: str):
    stream = io.StringIO()
    journal.begin(log_format, stream)
    try:
        raise ValueError("a\nb")
    except ValueError:
        logging.getLogger("convmem").exception("a fault")
    (line,) = stream.getvalue().splitlines()
    assert "a fault" in line
    assert "ValueError" in line


def test_a_json_line_says_when_how_bad_who_and_what():
    stream = io.StringIO()
    journal.begin("json", stream)
    logging.getLogger("convmem.store").error("cut %d bytes", 7)
    line = json.loads(stream.getvalue())
    assert line.pop("at").endswith("Z")
    assert line == {"level": "error", "logger": "convmem.store", "event": "cut 7 bytes"}


def test_of_libraries_only_warnings_are_kept():
    stream = io.StringIO()
    journal.begin("text", stream)
    logging.getLogger("uvicorn.error").info("chatter")
    logging.getLogger("uvicorn.error").warning("trouble")
    logging.getLogger("convmem").info("started")
    assert [line.split(" ", 2)[1:] for line in stream.getvalue().splitlines()] == [
        ["warning", "uvicorn.error: trouble"],
        ["info", "convmem: started"],
    ]


def test_a_refusal_is_a_plain_line_until_there_is_a_journal(capsys: pytest.CaptureFixture[str]):
    logging.root.handlers[:] = []
    journal.refusal("STORE_LOCKED: held by\x1b 7")
    assert capsys.readouterr().err == "convmem: STORE_LOCKED: held by\\x1b 7\n"
    stream = io.StringIO()
    journal.begin("json", stream)
    journal.refusal("STORE_LOCKED: held by 7")
    assert json.loads(stream.getvalue())["event"] == "STORE_LOCKED: held by 7"
    assert capsys.readouterr().err == ""


def read_all(descriptor: int) -> str:
    """What a pipe holds now."""
    os.set_blocking(descriptor, False)
    held = b""
    while True:
        try:
            held += os.read(descriptor, 65_536)
        except BlockingIOError:
            return held.decode()


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_a_journal_that_nobody_reads_holds_up_nobody_and_says_later_what_was_lost(log_format: str):
    reading, writing = os.pipe()
    with os.fdopen(writing, "w", encoding="utf-8") as stream:
        journal.begin(log_format, stream)
        for number in range(200):
            logging.getLogger("convmem").info("number %d %s", number, "語" * 1500)
        before = read_all(reading)
        logging.getLogger("convmem").info("here again")
        after = read_all(reading)
    os.close(reading)
    kept = before.count("number ")
    assert 0 < kept < 200
    lines = (before + after).split("\n")
    assert lines.pop() == ""
    whole = [line for line in lines if "number" in line and line.rstrip('"}').endswith("語" * 1500)]
    assert f"lines lost because nobody read them: {200 - len(whole)}" in lines[-2]
    assert "here again" in lines[-1]


def test_a_reader_that_is_gone_holds_up_nobody():
    reading, writing = os.pipe()
    os.close(reading)
    stream = os.fdopen(writing, "w", encoding="utf-8", buffering=1)
    journal.begin("text", stream)
    logging.getLogger("convmem").warning("to nobody")
    with pytest.raises(BrokenPipeError):
        stream.close()  # what it could not write is still there


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_a_token_that_stands_where_none_belongs_is_shown_without_its_secret(log_format: str):
    stream = io.StringIO()
    journal.begin(log_format, stream)
    secret = "cvm_" + "aB3_-" * 8
    logging.getLogger("convmem").info("refused 404 /.well-known/%s: host %s", secret, secret.upper())
    written = stream.getvalue()
    assert secret[4:] not in written
    assert secret[4:].upper() not in written
    assert written.lower().count("cvm_[…]") == 2
