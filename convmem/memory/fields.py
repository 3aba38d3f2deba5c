"""The types of arguments of memory: what a text, a number, a name may be.

Sizes are code points, which is what a model counts and JSON Schema can say. A text that shows nothing is refused: it
would be remembered and never be of use. Names (keys, projects, sections, files) hold no U+0000; values, lessons,
sections' content and topics may.
"""

import re
import unicodedata
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from convmem.inputs import ULID, WITHOUT_NUL, AsWhole, sized
from convmem.limits import (
    EXPORT_NAME_CODE_POINTS_MAX,
    HISTORY_HITS_MAX,
    INTERACTIONS_LIMIT_MAX,
    LESSON_TEXT_CODE_POINTS_MAX,
    PREFERENCE_KEY_CODE_POINTS_MAX,
    PREFERENCE_VALUE_CODE_POINTS_MAX,
    PROJECT_BYTES_MAX,
    RECALL_LIMIT_MAX,
    SECTION_CODE_POINTS_MAX,
    TOPIC_CODE_POINTS_MAX,
)

# No number has the length of a ULID.
NUMBER = re.compile("[0-9]{1,25}")
# Spaces, line ends, control and format characters: what shows nothing by itself.
UNSEEN = {"Zs", "Zl", "Zp", "Cc", "Cf"}
FILE_NAME = re.compile("[A-Za-z0-9_][A-Za-z0-9._-]*[.]json")
# Names that Windows takes for devices, whatever follows their first dot.
DEVICES = {"con", "prn", "aux", "nul", *(f"{port}{digit}" for port in ("com", "lpt") for digit in range(10))}


def is_blank(text: str) -> bool:
    """True if nothing of the text would be seen."""
    return all(unicodedata.category(character) in UNSEEN for character in text)


def _visible(value: str) -> str:
    if is_blank(value):
        raise ValueError("must not be blank")
    return value


def _absent_if_blank(value: Any) -> Any:
    """Many models fill an optional argument with an empty text."""
    return None if isinstance(value, str) and is_blank(value) else value


def _whole_as_text(value: Any) -> Any:
    """12 and 12.0 for "12"; a truth value is no number."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _target(value: str) -> str:
    if not NUMBER.fullmatch(value) and not ULID.fullmatch(value):
        raise ValueError("must be a number, or an id: a ULID of 26 characters")
    return value.upper()


def _ulid(value: str) -> str:
    if not ULID.fullmatch(value):
        raise ValueError("must be an id: a ULID of 26 characters")
    return value.upper()


def _file_name(value: str) -> str:
    if len(value) > EXPORT_NAME_CODE_POINTS_MAX or ".." in value or not FILE_NAME.fullmatch(value):
        raise ValueError(
            f"must be at most {EXPORT_NAME_CODE_POINTS_MAX} of A-Z a-z 0-9 . _ -, begin with a letter, a digit or _,"
            " hold no two dots in a row and end in .json"
        )
    if value.split(".")[0].lower() in DEVICES:
        raise ValueError("must not be the name of a device")
    return value


VISIBLE = AfterValidator(_visible)
ABSENT_IF_BLANK = BeforeValidator(_absent_if_blank)

Key = Annotated[str, Field(max_length=PREFERENCE_KEY_CODE_POINTS_MAX), WITHOUT_NUL, VISIBLE]
Value = Annotated[str, Field(max_length=PREFERENCE_VALUE_CODE_POINTS_MAX), VISIBLE]
LessonText = Annotated[str, Field(max_length=LESSON_TEXT_CODE_POINTS_MAX), VISIBLE]
Content = Annotated[str, Field(max_length=SECTION_CODE_POINTS_MAX), VISIBLE]
SectionName = Annotated[str, Field(pattern="^[a-z0-9_]{1,64}$")]
Project = Annotated[str, WITHOUT_NUL, sized(0, PROJECT_BYTES_MAX), VISIBLE]
Topic = Annotated[str, Field(max_length=TOPIC_CODE_POINTS_MAX), VISIBLE]
TargetId = Annotated[str, AfterValidator(_target), BeforeValidator(_whole_as_text)]
RecordId = Annotated[str, AfterValidator(_ulid)]
FileName = Annotated[str, AfterValidator(_file_name)]
RecallLimit = Annotated[int, Field(ge=1, le=RECALL_LIMIT_MAX), AsWhole]
HistoryLimit = Annotated[int, Field(ge=1, le=HISTORY_HITS_MAX), AsWhole]
InteractionsLimit = Annotated[int, Field(ge=1, le=INTERACTIONS_LIMIT_MAX), AsWhole]
