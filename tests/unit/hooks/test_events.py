"""hooks/events: what leaves the process is checked, without secrets, and short, in this order."""

import json
import time
from typing import Any

import pytest

from convmem.hooks.events import CODE_POINTS_MAX, NAMES_BYTES_MAX, NotAnEvent, line, start_of
from convmem.messages import cleaning, inputs
from convmem.messages.model import CAPTURE_KINDS

NOW_MS = 1_700_000_000_000
SECRET = "sk-proj-FAKE0000000000000000000000"


def event(**fields: Any) -> dict[str, Any]:
    return {"event_id": "e", "session_id": "s", "kind": "prompt", "content": "hello", **fields}


def made(**fields: Any) -> dict[str, Any]:
    text = line(event(**fields), "minted", NOW_MS)
    assert text is not None
    assert b"\n" not in text
    found: dict[str, Any] = json.loads(text)
    return found


def test_an_event_says_what_it_said():
    whole = event(at=5, project="p", tool="t", status="ok", directory="/d", content="สวัสดี\n\0\u2028 ‘x’")
    assert made(**whole) == whole


def test_what_is_absent_is_filled_in_or_left_out():
    given = event(event_id=None, project=None, at=None)
    text = line(given, "minted", NOW_MS)
    assert text is not None
    assert json.loads(text) == {**event(event_id="minted"), "at": NOW_MS}


def test_the_daemon_takes_what_is_made_here_and_cuts_and_cleans_nothing_more():
    for kind in CAPTURE_KINDS:
        fields = {"content": f"{SECRET} password=hunter2 " + "€x" * 5_000, "directory": f"/a/{SECRET}", "tool": SECRET}
        found = inputs.CaptureEvent.model_validate(made(kind=kind, event_id=f"id-{SECRET}", **fields))
        assert cleaning.cleaned_event(found) == found
        assert len(found.content) == cleaning.KEPT_CODE_POINTS_MAX[kind]
        assert found.content.endswith(cleaning.CUT)


def test_the_bounds_are_those_of_the_daemon():
    assert CODE_POINTS_MAX == cleaning.KEPT_CODE_POINTS_MAX
    assert NAMES_BYTES_MAX == cleaning.EVENT_NAMES


@pytest.mark.parametrize("name", ["event_id", "session_id", "project", "tool", "status", "directory", "content"])
def test_a_secret_leaves_in_no_field(name: str):
    said = "https://user:Tr0ub4dor@example.com/"
    if name == "status":
        said = "password=hunter2"
    text = line(event(**{name: f"a {said}"}), "minted", NOW_MS)
    assert text is not None
    assert b"[REDACTED:" in text
    assert not [secret for secret in (b"Tr0ub4dor", b"hunter2") if secret in text]


def test_two_names_that_held_secrets_stay_two():
    ids = {made(event_id=f"password=hunter{number}")["event_id"] for number in range(3)}
    assert len(ids) == 3


def test_a_name_that_has_grown_keeps_the_end_that_tells_it_from_others():
    names = [made(event_id="x" * 230 + f" password=hunter{number}")["event_id"] for number in range(2)]
    assert len(set(names)) == 2
    assert max(len(name.encode()) for name in names) <= NAMES_BYTES_MAX["event_id"]


@pytest.mark.parametrize("name", ["project", "tool", "status", "directory"])
def test_a_name_that_need_not_stay_unlike_others_says_nothing_of_its_secret(name: str):
    said = {made(**{name: f"/x password=hunter{number}"})[name] for number in range(3)}
    assert said == {"/x password=[REDACTED:credential]"}


def test_a_secret_is_looked_for_before_the_text_is_cut():
    kept = CODE_POINTS_MAX["tool_call"]
    for room in range(1, len(SECRET) + 8):
        content = made(kind="tool_call", content="x" * (kept - room) + " " + SECRET + " and more" * 100)["content"]
        assert "FAKE" not in content
        assert len(content) == kept


def test_of_a_long_text_the_start_is_the_same_as_if_all_had_been_looked_through():
    block = "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEowIBAAKCAQEA7x1kf9Qz\n" * 20 + "-----END RSA PRIVATE KEY-----\n"
    for text in ("word " * 40_000, block * 400, ("word " * 300 + block) * 60, "x" * 70_000 + block):
        assert len(text) > 65_536
        assert "MIIE" not in start_of(text, 4_000)
        assert start_of(text, 4_000) == cleaning._cut(cleaning.redact(text), "prompt")


def test_a_mebibyte_is_cut_in_time():
    text = ("please look at this: x = 1; path/to/file.py:12 ok " * 21_000)[: 1024 * 1024]
    begun = time.perf_counter()
    assert len(start_of(text, 4_000)) == 4_000
    assert time.perf_counter() - begun < 1


@pytest.mark.parametrize("content", ["", " \n\t", "\u3000\u00a0"])
def test_what_says_nothing_is_no_event(content: str):
    assert line(event(content=content), "minted", NOW_MS) is None


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        *((value, "an event is a JSON object") for value in (None, 7, "text", [])),
        (event(kind="chat"), "kind is one of"),
        (event(kind=["prompt"]), "kind is one of"),
        (event(content=None), "content is a text"),
        (event(content=["a"]), "content is a text"),
        (event(session_id=None), "session_id is a text"),
        (event(session_id=7), "session_id is a text"),
        (event(session_id=""), "session_id is empty"),
        (event(event_id=""), "event_id is empty"),
        (event(event_id="é" * 129), "longer than 256 bytes"),
        (event(directory="x" * 1025), "longer than 1024 bytes"),
        (event(tool="a\0b"), r"holds U\+0000"),
        *((event(at=at), "at is a time") for at in ("now", -1, 1.5, True, 2**63, [])),
        (event(role="user"), "a field that has no meaning"),
    ],
)
def test_what_cannot_be_captured_is_refused_without_repeating_it(said: Any, reason: str):
    with pytest.raises(NotAnEvent, match=reason):
        line(said, "minted", NOW_MS)


def test_a_time_may_be_written_as_a_fraction_that_is_none():
    assert made(at=5.0)["at"] == 5
