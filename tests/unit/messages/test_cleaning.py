"""What is taken out of texts before they become commands."""

from typing import Any

import pytest

from convmem.errors import Invalid
from convmem.inputs import checked
from convmem.limits import CAPTURED_OTHER_CODE_POINTS_MAX, CAPTURED_PROMPT_CODE_POINTS_MAX, TAG_BYTES_MAX
from convmem.messages.cleaning import (
    EVENT_NAMES,
    IDS,
    KEPT_CODE_POINTS_MAX,
    METADATA_TEXTS,
    cleaned_event,
    cleaned_message,
)
from convmem.messages.inputs import CaptureEvent, MetadataGiven, UpdateMessage, WriteMessage
from convmem.messages.model import CAPTURE_KINDS
from convmem.redact import redact_name

KEY = "ghp_" + "FAKE" * 9


def event(**more: Any) -> CaptureEvent:
    return checked(CaptureEvent, {"event_id": "e", "kind": "prompt", "session_id": "s", "content": "x", **more})


def test_every_kind_has_a_bound_and_every_text_of_an_event_is_looked_at():
    assert set(KEPT_CODE_POINTS_MAX) == set(CAPTURE_KINDS)
    assert set(EVENT_NAMES) == set(CaptureEvent.model_fields) - {"kind", "content", "at"}
    texts = {name for name, field in MetadataGiven.model_fields.items() if "str" in str(field.annotation)}
    assert {*METADATA_TEXTS, "tags"} == texts - {"memory_tier", "memory_kind", "source_message_ids"}


def test_an_event_without_secrets_stays_as_it_is():
    given = event(at=5, project="p", tool="Bash", status="ok", directory="/srv/あ", content="日本語 🟡 \0 ")
    assert cleaned_event(given) == given


@pytest.mark.parametrize("name", EVENT_NAMES)
def test_a_secret_in_a_name_is_taken_out_and_two_ids_stay_two(name: str):
    found = [getattr(cleaned_event(event(**{name: f"{KEY}{end}"[-60:]})), name) for end in ("A", "B")]
    assert len(set(found)) == 1 + (name in IDS)
    assert all("FAKE" not in text and len(text.encode()) <= EVENT_NAMES[name] for text in found)


def test_a_name_that_grows_too_long_is_cut_from_its_start():
    long = "あ" * 72 + " " + KEY[:39]
    cut = cleaned_event(event(event_id=long)).event_id
    assert len(cut.encode()) <= EVENT_NAMES["event_id"] < len(redact_name(long).encode())
    assert cut.endswith(redact_name(long)[-40:])


def test_the_cut_comes_after_the_redaction_and_ends_in_an_ellipsis():
    text = "x" * (CAPTURED_OTHER_CODE_POINTS_MAX - 10) + " " + KEY + " tail" * 50
    cut = cleaned_event(event(kind="error", content=text)).content
    assert (len(cut), cut[-1]) == (CAPTURED_OTHER_CODE_POINTS_MAX, "…")
    assert "FAKE" not in cut
    whole = "🟡" * CAPTURED_PROMPT_CODE_POINTS_MAX
    assert cleaned_event(event(content=whole)).content == whole


def test_a_message_is_cleaned_in_all_that_it_says_and_keeps_the_rest():
    metadata = {"summary": f"of {KEY}", "tags": [KEY, "plain"], "project": f"p {KEY}", "importance": 7}
    given = checked(WriteMessage, {"session_id": KEY, "role": "user", "content": f"a {KEY} b", "metadata": metadata})
    clean = cleaned_message(given)
    assert "FAKE" not in clean.model_dump_json()
    assert clean.metadata is not None
    assert clean.content.startswith("a [REDACTED:")
    assert clean.content.endswith("] b")
    assert (clean.metadata.importance, (clean.metadata.tags or [])[1]) == (7, "plain")


def test_a_change_still_takes_away_what_it_takes_away():
    given = checked(UpdateMessage, {"message_id": "0" * 26, "metadata": {"summary": None, "tags": [KEY]}})
    clean = cleaned_message(given)
    assert clean.content is None
    assert clean.metadata is not None
    assert clean.metadata.model_fields_set == {"summary", "tags"}
    assert clean.metadata.summary is None
    assert "FAKE" not in clean.model_dump_json()


def test_a_name_of_a_message_that_gets_too_long_is_refused():
    tag = "password=" + "q" * (TAG_BYTES_MAX - 9)
    short = checked(WriteMessage, {"session_id": "s", "role": "user", "content": "", "metadata": {"tags": [tag]}})
    assert "qqq" not in cleaned_message(short).model_dump_json()
    long = {"session_id": ("x" * 216 + " " + KEY)[:256], "role": "user", "content": ""}
    with pytest.raises(Invalid) as refused:
        cleaned_message(checked(WriteMessage, long))
    assert refused.value.details["field"] == "session_id"
