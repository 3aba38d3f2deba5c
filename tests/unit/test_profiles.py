"""profiles.py: the verb `profile`, as the daemon runs it."""

import hashlib
from typing import Any

import pytest

from convmem import profiles
from convmem.errors import Conflict, Invalid, NotFound
from tests.support.remembered import Remembered

SECRET = "password=FAKE0000FAKE0000"


async def test_what_is_written_is_read_shown_and_deleted():
    access = Remembered()
    written = await profiles.operate(access, {"action": "set", "section": "identity", "content": "Works on clocks."})
    assert (written["section"], written["changed"]) == ("identity", ["content"])
    again = await profiles.operate(access, {"action": "set", "section": "identity", "content": "Works on clocks."})
    assert again["changed"] == []
    read = await profiles.operate(access, {"action": "read", "section": "identity"})
    assert read["content"] == "Works on clocks."
    access.remember(project="shop")
    shown = await profiles.operate(access, {"action": "show"})
    assert [found["section"] for found in shown["sections"]] == ["identity"]
    assert len(shown["preferences"]) == 1
    assert (await profiles.operate(access, {"action": "show", "project": "clock"}))["preferences"] == []
    assert (await profiles.operate(access, {"action": "delete", "section": "identity"}))["deleted"] is True
    for action in ("read", "delete"):
        with pytest.raises(NotFound):
            await profiles.operate(access, {"action": action, "section": "identity"})


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({}, "action"),
        ({"action": "burn"}, "action"),
        ({"action": ["show"]}, "action"),
        ({"action": "show", "section": "identity"}, "section"),
        ({"action": "read"}, "section"),
        ({"action": "read", "section": "../x"}, "section"),
        ({"action": "set", "section": "identity"}, "content"),
        ({"action": "set", "section": "identity", "content": "c" * 4_001}, "content"),
        ({"action": "set", "section": "identity", "content": " \n"}, "content"),
        ({"action": "delete", "section": "Identity"}, "section"),
    ],
)
async def test_what_cannot_be_meant_is_refused_by_its_field(arguments: dict[str, Any], field: str):
    access = Remembered()
    with pytest.raises(Invalid) as refusal:
        await profiles.operate(access, arguments)
    assert refusal.value.details["field"] == field
    assert access.log == []


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


async def test_a_section_that_was_changed_meanwhile_is_not_replaced():
    access = Remembered()

    async def write(content: str, replaces: Any) -> Any:
        return await profiles.operate(
            access, {"action": "set", "section": "notes", "content": content, "replaces": replaces}
        )

    assert (await write("first", sha256("")))["changed"] == ["content"]
    assert (await write("second", sha256("first")))["changed"] == ["content"]
    for replaces in (sha256("first"), sha256(""), "second"):
        with pytest.raises(Conflict) as refusal:
            await write("lost", replaces)
        assert refusal.value.details["field"] == "replaces"
    await profiles.operate(access, {"action": "delete", "section": "notes"})
    with pytest.raises(Conflict):
        await write("lost", sha256("second"))
    assert not any(b"lost" in encoded for _, encoded in access.log)


async def test_a_person_s_own_words_stay_unless_the_daemon_redacts_everything():
    ask = {"action": "set", "section": "notes", "content": f"the wifi has {SECRET}"}
    plain, strict = Remembered(), Remembered(redacts=True)
    for access in (plain, strict):
        await profiles.operate(access, ask)
    assert any(SECRET.encode() in encoded for _, encoded in plain.log)
    assert not any(b"FAKE0000" in encoded for _, encoded in strict.log)
