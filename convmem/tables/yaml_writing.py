"""YAML out: plain values become a file that every reader of YAML, old and new, understands in the same way.

A text stands without quotes only if it is words that no version of YAML takes for something else; one of several lines
stands as a block; any other in double quotes, with what cannot be seen escaped. That is a small part of YAML, and it is
written here.

Rejected: ruamel.yaml's emitter. It leaves `no` and `12:30:45` bare, which programs that share the file may read as
false and as a number, and breaks lines at U+2028, where its own reader sees none.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

# Words that need no quotes, but for those that some YAML has another meaning for.
BARE = re.compile("[A-Za-z_][A-Za-z0-9_.-]*(?: [A-Za-z0-9_.(-][A-Za-z0-9_.,;()-]*)*")
NOT_BARE = frozenset(("null", "true", "false", "yes", "no", "on", "off", "y", "n"))
# What may stand in a file as it is, within a line; the first letter of a block is none that moves its edge.
SEEN = " -~\xa0-\u2027\u202a-\ufefe\uff00-\ufffd\U00010000-\U0010ffff"
BLOCK = re.compile(f"[!-~\xa1-\u2027][{SEEN}\n]*")
ESCAPED = re.compile(f'[^{SEEN}]|["\\\\]')
SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
# A key that is longer needs a mark before it (YAML 1.2, "implicit keys").
PLAIN_KEY_CODE_POINTS_MAX = 1_000
STEP = "  "


def write(value: Any) -> bytes:
    """The file of one value of mappings, sequences, texts, numbers, booleans and None: UTF-8, a line break at the end.

    Numbers must be finite and integers fit in 64 bits; texts are valid Unicode without U+0000.
    """
    lines = _block(value, "") if _is_block(value) else [_word(value)]
    return ("\n".join(lines) + "\n").encode()


def _is_block(value: Any) -> bool:
    return isinstance(value, Mapping | Sequence) and not isinstance(value, str) and bool(value)


def _block(value: Mapping[str, Any] | Sequence[Any], pad: str) -> Iterator[str]:
    """The lines of a mapping or a list that holds something, each behind `pad`."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            key = _bare(name) or _quoted(name)
            if len(key) > PLAIN_KEY_CODE_POINTS_MAX:
                yield f"{pad}? {key}"
                key = ""
            yield from _behind(f"{pad}{key}:", inner, pad + STEP)
        return
    for inner in value:
        if _is_block(inner):
            first, *rest = _block(inner, pad + STEP)
            yield f"{pad}- {first.removeprefix(pad + STEP)}"
            yield from rest
        else:
            yield from _behind(f"{pad}-", inner, pad + STEP)


def _behind(head: str, value: Any, pad: str) -> Iterator[str]:
    """The lines of a value that belongs to a key or a dash; what does not fit behind it goes below, behind `pad`."""
    if _is_block(value):
        yield head
        yield from _block(value, pad)
    elif isinstance(value, str) and "\n" in value and BLOCK.fullmatch(value) and not value.endswith("\n\n"):
        yield f"{head} |" if value.endswith("\n") else f"{head} |-"
        yield from (f"{pad}{line}" if line else "" for line in value.removesuffix("\n").split("\n"))
    else:
        yield f"{head} {_word(value)}"


def _word(value: Any) -> str:
    """A value on one line; yaml_reading.plain_value is the way back from what is no text."""
    if isinstance(value, str):
        return _bare(value) or _quoted(value)
    if isinstance(value, Mapping | Sequence):
        return "{}" if isinstance(value, Mapping) else "[]"
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _bare(text: str) -> str | None:
    return text if BARE.fullmatch(text) and text.lower() not in NOT_BARE else None


def _quoted(text: str) -> str:
    return f'"{ESCAPED.sub(_escape, text)}"'


def _escape(found: re.Match[str]) -> str:
    letter = found.group()
    code = ord(letter)
    return SHORT.get(letter) or (f"\\x{code:02X}" if code < 0x100 else f"\\u{code:04X}")
