"""A reply has a measured size, and a cut value never stands under its own name."""

from typing import Any

import msgspec
import pytest

from convmem.domain import Origin
from convmem.messages import replies
from convmem.messages.model import Message, Metadata

TEXTS = ["plain", 'quo"ted\\', "\x01\n\t", "日本\u2028語\u2029", "\U0001f600" * 5, "a\0b", "\x7f\x85"]


def message(content: str, **metadata: Any) -> Message:
    return Message(
        message_id="01HF7YAT000000000000000007",
        session_id="s",
        timestamp=1,
        updated_at=1,
        revision=1,
        sequence=1,
        changed_sequence=1,
        role="user",
        content=content,
        content_bytes=len(content.encode()),
        metadata=Metadata(**metadata),
        origin=Origin("local", "test"),
    )


@pytest.mark.parametrize("text", TEXTS)
def test_the_size_of_facts_is_that_of_both_copies_and_never_less(text: str):
    facts = {"content": text, "list": [1, None, {"key": text}]}
    structured = msgspec.json.encode(facts)
    both = len(structured) + len(msgspec.json.encode(structured.decode())) - 2
    assert replies.reply_bytes(facts) >= both
    if "\u2028" not in text:
        assert replies.reply_bytes(facts) == both


def test_separators_are_counted_as_if_they_were_escaped():
    assert replies.reply_bytes("\u2028" * 10) >= 10 * (6 + 7)


def test_a_message_is_shown_whole_while_it_fits():
    facts = replies.Budget(64 * 1024).fit(message("x" * 20_000), is_first=False)
    assert facts is not None
    assert facts["content"] == "x" * 20_000


def test_a_large_content_becomes_a_preview_under_another_name():
    facts = replies.Budget(64 * 1024).fit(message("é" * 50_000), is_first=False)
    assert facts is not None
    assert "content" not in facts
    assert facts["content_preview"] == "é" * 512
    assert facts["total_bytes"] == 100_000
    assert list(facts)[-4:] == ["content_preview", "total_bytes", "metadata", "origin"]


def test_a_content_up_to_four_kib_is_whole_or_on_the_next_page():
    budget = replies.Budget(10_000)
    assert budget.fit(message("x" * 3_000), is_first=True) is not None
    assert budget.fit(message("x" * 4_096), is_first=False) is None


def test_the_first_record_fits_whatever_is_left():
    large = message("\x01" * 2**17, summary="\x01" * 4096, tags=tuple(f"{n}" + "\x01" * 120 for n in range(32)))
    for bytes_max in (1, 5_000, 64 * 1024):
        facts = replies.Budget(bytes_max).fit(large, is_first=True)
        assert facts is not None
        assert facts["message_id"] == large.message_id
        assert facts["total_bytes"] == 2**17


def test_metadata_that_does_not_fit_is_named_with_its_size():
    large = message("x", summary="\x01" * 4096, tags=tuple(f"{n}" + "\x01" * 120 for n in range(32)))
    facts = replies.Budget(64 * 1024).fit(large, is_first=True)
    assert facts is not None
    assert facts["content"] == "x"
    assert [omitted["field"] for omitted in facts["omitted"]] == ["metadata.summary"]
    assert facts["omitted"][0]["bytes"] == 4096 * 6 + 2
    assert "summary" not in facts["metadata"]
    assert len(facts["metadata"]["tags"]) == 32


def test_a_budget_is_used_up():
    budget = replies.Budget(replies.REPLY_ENVELOPE_BYTES + 3 * (replies.reply_bytes("abc") + 2))
    assert [budget.take("abc") for _ in range(4)] == [True, True, True, False]


def test_beside_another_a_message_is_short():
    assert replies.brief(message("é" * 5), 5) == {"content": "é" * 5}
    assert replies.brief(message("é" * 6), 5) == {"content_preview": "é" * 5, "total_bytes": 12}
