"""What is left of keys and events to know them again by."""

from convmem.fingerprints import FINGERPRINT_BYTES, fingerprint
from convmem.messages.fingerprints import mark


def test_a_fingerprint_is_short_and_tells_texts_apart():
    assert len(fingerprint(b"")) == FINGERPRINT_BYTES
    assert len({fingerprint(text) for text in (b"", b"a", b"b", b"ab")}) == 4


def test_a_mark_knows_the_event_and_the_text_each_by_itself():
    one = mark("s", "1", "prompt", "hello")
    assert mark("s", "1", "prompt", "hello") == one
    other_event = mark("s", "2", "prompt", "hello")
    assert (other_event.event != one.event, other_event.text, other_event.session) == (True, one.text, one.session)
    assert mark("s", "1", "error", "hello").text != one.text
    assert mark("t", "1", "prompt", "hello").session != one.session


def test_ids_do_not_run_into_each_other():
    assert mark("a", "bc", "prompt", "").event != mark("ab", "c", "prompt", "").event
    assert mark("s", "e", "prompt", "x").text != mark("s", "e", "promp", "tx").text
