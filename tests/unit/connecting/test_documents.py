"""connecting/documents: whatever an edit returns was read again; one that changed more returns nothing."""

import pytest

from convmem.connecting import documents, jsonc_edits
from convmem.connecting.documents import FORMS
from convmem.connecting.misfits import Misfit

PATH = ("servers", "convmem")
TEXTS = {"json": '{"servers": {"x": {"n": 1e999}}}', "toml": "[servers.x]\nn = nan\n"}


@pytest.mark.parametrize("form", FORMS)
def test_an_entry_comes_is_seen_and_goes(form: documents.Form):
    text = TEXTS[form]
    added = documents.with_entry(form, text, PATH, {"url": "u"}, frozenset({"url"}))
    assert documents.entry_at(form, added, PATH) == {"url": "u"}
    assert documents.entry_at(form, text, PATH) is None
    assert documents.with_entry(form, added, PATH, {"url": "u"}, frozenset({"url"})) == added
    assert documents.without_entry(form, added, PATH) == text
    assert documents.without_entry(form, text, PATH) == text


@pytest.mark.parametrize("form", FORMS)
def test_an_empty_file_says_nothing_and_can_be_filled(form: documents.Form):
    assert documents.meaning(form, "") == {}
    assert documents.entry_at(form, "", PATH) is None
    assert documents.without_entry(form, "", PATH) == ""
    added = documents.with_entry(form, "", PATH, {"url": "u"}, frozenset())
    assert added == documents.snippet(form, PATH, {"url": "u"})
    documents.without_entry(form, added, PATH)


def test_an_edit_that_changes_more_is_a_fault_of_ours(monkeypatch: pytest.MonkeyPatch):
    spoiled = FORMS["json"]._replace(merged=lambda text, *others: jsonc_edits.put("{}", PATH, {"url": "u"}))
    monkeypatch.setattr(documents, "FORMS", {"json": spoiled})
    with pytest.raises(AssertionError, match="changed what it should not"):
        documents.with_entry("json", '{"a": 1}', PATH, {"url": "u"}, frozenset())


def test_bytes_that_are_no_text_are_refused_with_their_place():
    assert documents.decoded(b"\xef\xbb\xbf{}\r\n") == "\ufeff{}\r\n"
    with pytest.raises(Misfit, match="not UTF-8") as caught:
        documents.decoded('{\n"é": "'.encode() + b'\xff"}')
    assert (caught.value.line, caught.value.column) == (2, 7)
