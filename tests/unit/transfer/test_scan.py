"""One bad line anywhere refuses the file, and the line is named."""

from typing import Any

import apsw
import pytest

from convmem.errors import CallerError, Conflict, ContentTooLarge, Invalid, Stopping
from convmem.limits import CONTENT_BYTES_MAX
from convmem.transfer import scan as scan_module
from convmem.transfer.scan import scan
from tests.support.filed import DOMAINS, MANIFEST, ULIDS, file, message, scanned, written


def refusal(*records: Any, manifest: bytes = MANIFEST) -> CallerError:
    with pytest.raises(CallerError) as refused:
        scanned(written(records, manifest))
    return refused.value


def test_a_sound_file_passes_however_it_was_saved():
    records = [message(number) for number in range(4)]
    data = written(records)
    for saved in (data, data[:-1], data.replace(b"\n", b"\r\n"), b"\xef\xbb\xbf" + data, data.replace(b"\n", b"\n\n")):
        assert scanned(saved).records == 4


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        (b"{", None),
        (b"[]", None),
        (b"null", None),
        (b'{"type":"message","type":"message"}', None),
        (b'{"a":NaN}', None),
        (b'{"a":' + b"9" * 5_000 + b"}", None),
        (b'{"a":"\\ud83d"}', None),
        (b"\xff\xff", None),
        ({}, "type"),
        ({"type": "lesson"}, "type"),
        ({"type": 1}, "type"),
        (message(2, extra=1), "extra"),
        (message(2, metadata={"extra": 1}), "metadata.extra"),
        (message(2, message_id="x"), "message_id"),
        (message(2, session_id=""), "session_id"),
        (message(2, session_id="a\0b"), "session_id"),
        (message(2, session_id="é" * 129), "session_id"),
        (message(2, timestamp=-1), "timestamp"),
        (message(2, timestamp=1.0), "timestamp"),
        (message(2, timestamp="1700000000000"), "timestamp"),
        (message(2, timestamp=True), "timestamp"),
        (message(2, timestamp=None), "timestamp"),
        (message(2, updated_at=0), "updated_at"),
        (message(2, revision=0), "revision"),
        (message(2, revision=2**31), "revision"),
        (message(2, role="tool"), "role"),
        (message(2, content=None), "content"),
        (message(2, metadata={"importance": 101}), "metadata.importance"),
        (message(2, metadata={"importance": "5"}), "metadata.importance"),
        (message(2, metadata={"tags": [""]}), "metadata.tags.0"),
        (message(2, metadata={"tags": "a"}), "metadata.tags"),
        (message(2, metadata={"tags": [str(number) for number in range(33)]}), "metadata.tags"),
        (message(2, metadata={"summary": "x" * 4097}), "metadata.summary"),
        (message(2, metadata={"relations": [{"type": "r"}]}), "metadata.relations.0.message_id"),
        (message(2, metadata={"source_message_ids": ["x"]}), "metadata.source_message_ids.0"),
        (message(2, origin={"device": "d"}), "origin.transport"),
        (message(2, origin={"device": "", "transport": "t"}), "origin.device"),
        (message(2, origin={"device": "d", "transport": "t", "client": "x" * 129}), "origin.client"),
        ({key: value for key, value in message(2).items() if key != "origin"}, "origin"),
    ],
)
def test_a_bad_line_is_named_with_its_field(bad: Any, field: str | None):
    error = refusal(message(0), message(1), bad, message(3))
    assert isinstance(error, Invalid)
    assert error.details["line"] == 4
    assert error.message.startswith("line 4: ")
    assert error.details.get("field") == field


def test_a_number_with_fraction_or_exponent_is_no_integer():
    plain = written([message(0)])
    for other in (b'"revision":1.0', b'"revision":1e0', b'"revision":10e-1'):
        with pytest.raises(Invalid) as refused:
            scanned(plain.replace(b'"revision":1', other))
        assert refused.value.details == {"line": 2, "field": "revision"}


def test_content_over_its_limit_is_named_by_its_own_code():
    assert scanned(written([message(0, content="あ" * (CONTENT_BYTES_MAX // 3))])).records == 1
    error = refusal(message(0, content="あ" * (CONTENT_BYTES_MAX // 3 + 1)))
    assert isinstance(error, ContentTooLarge)
    assert error.details["line"] == 2


def test_the_largest_record_fits_a_line_however_it_is_escaped():
    largest = written([message(0, content="\x01" * CONTENT_BYTES_MAX)])
    assert len(largest) > 6 * CONTENT_BYTES_MAX
    assert scanned(largest).records == 1


def test_a_record_that_stands_twice_is_refused_also_in_other_case():
    error = refusal(message(0), message(1), message(0, content="other"))
    assert isinstance(error, Conflict)
    assert error.details == {"line": 4, "first_line": 2}
    assert refusal(message(0), message(0, message_id=ULIDS[0].lower())).details["line"] == 3


def test_a_file_that_was_cut_at_the_end_of_a_line_is_noticed_by_its_manifest():
    manifest = MANIFEST[:-1] + b',"records":2}'
    assert scanned(written([message(0), message(1)], manifest)).records == 2
    for records in ([message(0)], [message(0), message(1), message(2)], []):
        error = refusal(*records, manifest=manifest)
        assert error.details == {"line": 1 + len(records), "field": "records"}


def test_a_file_without_a_manifest_or_without_anything_is_refused():
    for data in (b"", b"\n\n", written([message(0)]).split(b"\n", 1)[1]):
        with pytest.raises(Invalid) as refused:
            scanned(data)
        assert refused.value.details["line"] == 1


def test_bounds_of_records_and_bytes(monkeypatch: pytest.MonkeyPatch):
    data = written([message(0), message(1)])
    monkeypatch.setattr(scan_module, "IMPORT_RECORDS_MAX", 2)
    assert scanned(data).records == 2
    monkeypatch.setattr(scan_module, "IMPORT_RECORDS_MAX", 1)
    with pytest.raises(Invalid) as refused:
        scanned(data)
    assert refused.value.details["line"] == 3
    monkeypatch.setattr(scan_module, "IMPORT_BYTES_MAX", len(data) - 1)
    with pytest.raises(Invalid) as refused:
        scanned(data)
    assert refused.value.details["field"] == "file"


def test_it_tells_how_far_it_is_and_can_be_stopped(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(scan_module, "STRIDE", 2)
    data = written([message(number) for number in range(7)])
    told: list[tuple[int, int]] = []
    scan(file(data), DOMAINS, apsw.Connection(":memory:"), lambda done, total: told.append((done, total)))
    assert len(told) == 3
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert {total for _, total in told} == {len(data)}

    def stop(done: int, total: int) -> None:
        raise Stopping("enough", retry_after_ms=1)

    with pytest.raises(Stopping):
        scan(file(data), DOMAINS, apsw.Connection(":memory:"), stop)


def test_two_files_in_one_are_refused_by_name():
    refused = refusal(message(0), {"type": "manifest", "format": "convmem-jsonl", "version": 1}, message(1))
    assert (refused.details["line"], refused.details["field"]) == (3, "type")
    assert "a second manifest" in refused.message


def test_a_line_of_a_file_is_refused_in_words_of_a_file():
    assert refusal(message(0, extra=1)).message == "line 2: extra is not a field here"
    assert refusal(b'{"type": x}').message.endswith("at column 10")
