"""Conversations in files: each found once, read when its turn comes, and of two the one that was changed last."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from convmem.importers import conversations
from convmem.importers.conversations import Facts, Standing
from convmem.importers.model import Message, Notes
from convmem.importers.sources import found
from tests.support.imported import written


def look(value: Mapping[str, Any]) -> Facts | None:
    if "id" not in value:
        return None
    return Facts(value["id"], value.get("title"), value.get("at"), value.get("changed"), value.get("refused"))


def read(standing: Standing, value: Mapping[str, Any]) -> Iterator[Message]:
    for number, said in enumerate(value.get("said", ())):
        yield Message(conversation=standing.facts.id or "", id=str(number), role="user", content=said)


def entries(*paths: Path) -> tuple[list[Any], Notes]:
    notes = Notes()
    made = list(conversations.entries(list(found(paths)), lambda value: isinstance(value, dict), look, read, notes))
    return made, notes


def test_the_one_that_was_changed_last_counts(tmp_path: Path):
    old = written(
        tmp_path / "1.json", [{"id": "a", "changed": 1, "said": ["old"]}, {"id": "b", "changed": 5, "said": ["b"]}]
    )
    new = written(tmp_path / "2.json", [{"id": "a", "changed": 2, "said": ["new"], "title": "t", "at": 7}])
    for paths in ((old, new), (new, old)):
        made, notes = entries(*paths)
        assert sorted(record.content for entry in made for record in entry.read()) == ["b", "new"]
        assert not notes.skipped
    (first,) = [entry for entry in made if entry.title == "t"]
    assert first.at == 7
    assert first.where.endswith("2.json: t")


def test_what_is_none_or_refused_or_empty_is_told(tmp_path: Path):
    path = written(
        tmp_path / "x.json", [{"other": 1}, {"id": None, "title": "no id"}, {"id": "r", "refused": "why"}, {"id": "e"}]
    )
    made, notes = entries(path)
    assert [list(entry.read()) for entry in made] == [[]]
    assert [skip.why for skip in notes.skipped] == ["the conversation has no id", "why"]
    assert notes.passed_over == {"object that is no conversation": 1, "empty conversation": 1}


def test_a_file_that_is_gone_when_its_turn_comes_is_told(tmp_path: Path):
    path = written(tmp_path / "x.json", [{"id": "a", "said": ["x"]}])
    made, notes = entries(path)
    path.unlink()
    assert list(made[0].read()) == []
    assert "cannot be read any more" in notes.skipped[0].why


def test_marks_of_citations_go_and_the_words_stay():
    without = conversations.without_marks
    assert without("so \ue200cite\ue202turn0search1\ue201it is【1†source】.") == "so it is."
    assert without("\ue203Hello\ue204") == "Hello"
    assert without("【見出し】") == "【見出し】"
