"""The types of arguments of tables: what an id, a limit, an object may be.

Objects come in without named members: what they may hold depends on a table's schema, which is looked at later. Some
clients send them as JSON in a string, which is read by the same rules.
"""

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from convmem import strict_json
from convmem.inputs import WITHOUT_NUL, AsWhole, FromJSON, sized
from convmem.limits import EDIT_TEXT_BYTES_MAX, IDEMPOTENCY_KEY_BYTES_MAX, ROWS_LIMIT_MAX, ROWS_OFFSET_MAX, VERSION_MAX

ID_LENGTH = 36
PREFIX = re.compile("[0-9a-fA-F-]{1,35}")
SHA256 = re.compile("[0-9a-f]{64}")


def _row_id(value: str) -> str:
    if len(value) != ID_LENGTH and not PREFIX.fullmatch(value):
        raise ValueError("must be an id of 36 characters, or the beginning of one: 1 to 35 of 0-9 a-f -")
    return value


def _list(value: Any) -> Any:
    """Some clients send a list as a JSON string."""
    if isinstance(value, str):
        try:
            return strict_json.parse(value.encode())
        except strict_json.MalformedJSON as error:
            raise ValueError(f"must be a list; as a JSON string it cannot be read: {error}") from None
    return value


def _hash(value: str) -> str:
    if not SHA256.fullmatch(value.lower()):
        raise ValueError("must be a SHA-256 in hex: 64 of 0-9 a-f")
    return value.lower()


FROM_JSON_LIST = BeforeValidator(_list)
ANY_OBJECT = WithJsonSchema({"type": "object"})

Table = Annotated[str, Field(max_length=64)]
RowId = Annotated[str, Field(max_length=ID_LENGTH), WITHOUT_NUL, AfterValidator(_row_id)]
Object = Annotated[dict[str, Any], FromJSON, ANY_OBJECT]
Objects = Annotated[list[dict[str, Any]], FROM_JSON_LIST]
FieldName = Annotated[str, Field(max_length=128)]
Text = Annotated[str, sized(0, EDIT_TEXT_BYTES_MAX)]
Sha256 = Annotated[str, AfterValidator(_hash)]
IdempotencyKey = Annotated[str, WITHOUT_NUL, sized(1, IDEMPOTENCY_KEY_BYTES_MAX)]
Limit = Annotated[int, Field(ge=1, le=ROWS_LIMIT_MAX), AsWhole]
Offset = Annotated[int, Field(ge=0, le=ROWS_OFFSET_MAX), AsWhole]
Cursor = Annotated[str, Field(max_length=8192)]
Line = Annotated[int, Field(ge=0, le=VERSION_MAX), AsWhole]
Version = Annotated[int, Field(ge=1, le=VERSION_MAX), AsWhole]
Seconds = Annotated[int, Field(ge=0, le=VERSION_MAX), AsWhole]
LineRange = Annotated[
    list[Annotated[int, AsWhole]],
    Field(min_length=2, max_length=2),
    FROM_JSON_LIST,
]
