"""The types of arguments of messages: what a text, an id, a number may be.

Sizes are bytes of UTF-8 (a code point takes one to four), which JSON Schema cannot say: schemas say it in words and
these types check it. Names (session ids, tags, projects, …) hold no U+0000; content, summaries and queries may.
"""

from typing import Annotated

from pydantic import AfterValidator, Field

from convmem.errors import ContentTooLarge
from convmem.inputs import ULID, WITHOUT_NUL, AsWhole, sized
from convmem.limits import (
    CAPTURE_DIRECTORY_BYTES_MAX,
    CAPTURE_STATUS_BYTES_MAX,
    CAPTURE_TOOL_BYTES_MAX,
    CONTENT_BYTES_MAX,
    CONTENT_SLICE_BYTES_MAX,
    CURSOR_BYTES_MAX,
    EVENT_ID_BYTES_MAX,
    IDEMPOTENCY_KEY_BYTES_MAX,
    IMPORTANCE_MAX,
    PROJECT_BYTES_MAX,
    QUERY_BYTES_MAX,
    RELATION_TYPE_BYTES_MAX,
    REPLY_BYTES_MAX,
    REVISION_MAX,
    SESSION_ID_BYTES_MAX,
    SOURCE_NAME_BYTES_MAX,
    SUMMARY_BYTES_MAX,
    TAG_BYTES_MAX,
    TAGS_MAX,
    TIME_MS_MAX,
    TOOL_CALL_ID_BYTES_MAX,
)


def _content(value: str) -> str:
    content_bytes = len(value.encode())
    if content_bytes > CONTENT_BYTES_MAX:
        # Not a ValueError: it goes past the library and is answered with its own code.
        raise ContentTooLarge(
            f"content takes {content_bytes} bytes of UTF-8; {CONTENT_BYTES_MAX} are allowed",
            field="content",
            bytes=content_bytes,
            bytes_max=CONTENT_BYTES_MAX,
        )
    return value


def _ulid(value: str) -> str:
    if not ULID.fullmatch(value):
        raise ValueError("must be a message id: a ULID of 26 characters")
    return value.upper()


def _distinct(value: list[str]) -> list[str]:
    distinct = list(dict.fromkeys(value))
    if len(distinct) > TAGS_MAX:
        raise ValueError(f"must have at most {TAGS_MAX} entries")
    return distinct


SessionId = Annotated[str, WITHOUT_NUL, sized(1, SESSION_ID_BYTES_MAX)]
ToolCallId = Annotated[str, WITHOUT_NUL, sized(0, TOOL_CALL_ID_BYTES_MAX)]
Project = Annotated[str, WITHOUT_NUL, sized(0, PROJECT_BYTES_MAX)]
Tag = Annotated[str, WITHOUT_NUL, sized(1, TAG_BYTES_MAX)]
Tags = Annotated[list[Tag], AfterValidator(_distinct)]
RelationType = Annotated[str, WITHOUT_NUL, sized(1, RELATION_TYPE_BYTES_MAX)]
IdempotencyKey = Annotated[str, WITHOUT_NUL, sized(1, IDEMPOTENCY_KEY_BYTES_MAX)]
EventId = Annotated[str, WITHOUT_NUL, sized(1, EVENT_ID_BYTES_MAX)]
CaptureTool = Annotated[str, WITHOUT_NUL, sized(0, CAPTURE_TOOL_BYTES_MAX)]
CaptureStatus = Annotated[str, WITHOUT_NUL, sized(0, CAPTURE_STATUS_BYTES_MAX)]
CaptureDirectory = Annotated[str, WITHOUT_NUL, sized(0, CAPTURE_DIRECTORY_BYTES_MAX)]
SourceName = Annotated[str, WITHOUT_NUL, sized(1, SOURCE_NAME_BYTES_MAX)]
Fingerprint = Annotated[str, Field(pattern="^[0-9a-f]{32}$")]
Cursor = Annotated[str, WITHOUT_NUL, sized(1, CURSOR_BYTES_MAX)]
MessageId = Annotated[str, AfterValidator(_ulid)]
Content = Annotated[str, AfterValidator(_content)]
Summary = Annotated[str, sized(0, SUMMARY_BYTES_MAX)]
Query = Annotated[str, sized(1, QUERY_BYTES_MAX)]
Importance = Annotated[int, Field(ge=0, le=IMPORTANCE_MAX), AsWhole]
Revision = Annotated[int, Field(ge=1, le=REVISION_MAX), AsWhole]
Time = Annotated[int, Field(ge=0, le=TIME_MS_MAX), AsWhole]
Entries = Annotated[int, Field(ge=1, le=CONTENT_SLICE_BYTES_MAX), AsWhole]
ReplyBytes = Annotated[int, Field(ge=1, le=REPLY_BYTES_MAX), AsWhole]
