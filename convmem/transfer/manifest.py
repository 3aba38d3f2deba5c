"""The first line of a file of records: what the file is, and how many records belong to it.

The count tells a whole file from one that was cut at the end of a line.
"""

from datetime import UTC, datetime
from typing import Any

import msgspec

from convmem import strict_json
from convmem.errors import Invalid

MANIFEST, FORMAT, VERSION = "manifest", "convmem-jsonl", 1
KNOWN = {"type", "format", "version", "exported_at", "records"}


def manifest(*, records: int, at_ms: int) -> bytes:
    """The manifest as a line, without its line break; the time in UTC (ISO 8601)."""
    exported_at = datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds")
    return msgspec.json.encode(
        {
            "type": MANIFEST,
            "format": FORMAT,
            "version": VERSION,
            "exported_at": exported_at.replace("+00:00", "Z"),
            "records": records,
        }
    )


def records_promised(data: bytes) -> int | None:
    """How many records the file says it holds, None if it does not say. Invalid if this is no manifest of ours."""
    try:
        found = strict_json.parse(data)
    except strict_json.MalformedJSON as error:
        raise _refused(f"it is not JSON: {error}", "type") from None
    if not isinstance(found, dict) or found.get("type") != MANIFEST or found.get("format") != FORMAT:
        raise _refused(f'a file of records begins with {{"type": "{MANIFEST}", "format": "{FORMAT}", …}}', "type")
    version = found.get("version")
    if isinstance(version, bool) or not isinstance(version, int):
        raise _refused("version must be an integer", "version")
    if version != VERSION:
        raise _refused(f"the file is of version {version}, this convmem reads version {VERSION}", "version")
    for name in found.keys() - KNOWN:
        raise _refused("the manifest says more than this convmem knows", name[:64])
    return _count(found)


def _count(found: dict[str, Any]) -> int | None:
    records = found.get("records")
    if records is not None and (isinstance(records, bool) or not isinstance(records, int) or records < 0):
        raise _refused("records must be an integer of 0 or more", "records")
    return records


def _refused(sentence: str, field: str) -> Invalid:
    return Invalid(f"line 1: {sentence}", line=1, field=field)
