"""The first line says what a file is; anything else is refused before its records are looked at."""

import json

import pytest

from convmem.errors import Invalid
from convmem.transfer.manifest import manifest, records_promised
from tests.support.manual_clock import START_MS


def test_a_manifest_names_format_version_time_and_how_many_records_follow():
    line = manifest(records=3, at_ms=START_MS + 7)
    assert json.loads(line) == {
        "type": "manifest",
        "format": "convmem-jsonl",
        "version": 1,
        "exported_at": "2023-11-14T22:13:20.007Z",
        "records": 3,
    }
    assert records_promised(line) == 3


def test_a_manifest_need_not_promise_a_count():
    assert records_promised(b'{"type":"manifest","format":"convmem-jsonl","version":1}') is None


@pytest.mark.parametrize(
    ("line", "field"),
    [
        (b"", "type"),
        (b"{", "type"),
        (b"[]", "type"),
        (b'{"type":"message"}', "type"),
        (b'{"type":"manifest","format":"other","version":1}', "type"),
        (b'{"type":"manifest","format":"convmem-jsonl"}', "version"),
        (b'{"type":"manifest","format":"convmem-jsonl","version":2}', "version"),
        (b'{"type":"manifest","format":"convmem-jsonl","version":true}', "version"),
        (b'{"type":"manifest","format":"convmem-jsonl","version":1.0}', "version"),
        (b'{"type":"manifest","format":"convmem-jsonl","version":1,"version":1}', "type"),
        (b'{"type":"manifest","format":"convmem-jsonl","version":1,"records":-1}', "records"),
        (b'{"type":"manifest","format":"convmem-jsonl","version":1,"records":true}', "records"),
        (b'{"type":"manifest","format":"convmem-jsonl","version":1,"extra":1}', "extra"),
    ],
)
def test_what_is_no_manifest_of_ours_is_refused_with_its_line(line: bytes, field: str):
    with pytest.raises(Invalid) as refused:
        records_promised(line)
    assert refused.value.details == {"line": 1, "field": field}
