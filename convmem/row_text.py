"""A row as Markdown: the title as a heading, an empty line, and the body, ended by one line break.

Who keeps files beside rows and who writes them once show the same text.
"""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

TITLE_FIELD, BODY_FIELD = "title", "body"
# Line breaks of Markdown and of other readers: a title is one line.
_BREAKS = re.compile("[\0\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]+")


def markdown(data: Mapping[str, Any], *, title_field: str | None = None, body_field: str | None = None) -> str:
    """The text of a row. A field that holds no text stands as its JSON, an absent one is empty."""
    title = _BREAKS.sub(" ", _shown(data.get(title_field or TITLE_FIELD))).strip()
    body = _shown(data.get(body_field or BODY_FIELD)).rstrip("\n")
    return f"# {title}\n\n{body}\n"


def _shown(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
