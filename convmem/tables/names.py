"""What tables and fields may be called.

A table's name becomes a directory and a file, so it comes from a list of what is allowed and never from what some
filesystem happens to accept: no dot, no separator, no letter that another system writes in two ways, and no name that
stands for a device somewhere. A field's name never becomes a path or a piece of SQL (it is bound as a value), so it may
be any text that can be seen.

Rejected: quoting or replacing what is not allowed. Two names could become one, and nobody could guess the file.
"""

import re
import unicodedata

from convmem.limits import FIELD_NAME_BYTES_MAX

TABLE_NAME = re.compile("[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
DEVICES = frozenset(
    ("con", "prn", "aux", "nul", *(f"com{digit}" for digit in range(10)), *(f"lpt{digit}" for digit in range(10)))
)


def folded(name: str) -> str:
    """What a table's name is told apart by: some filesystems hold `Notes` and `notes` for one."""
    return name.lower()


def table_name_fault(name: str) -> str | None:
    """Why no table can be called this, as the end of a sentence; None if one can."""
    if not TABLE_NAME.fullmatch(name):
        return "must be 1 to 64 of the characters A-Z a-z 0-9 _ -, and begin with a letter or a digit"
    if folded(name) in DEVICES:
        return "is the name of a device on some systems"
    return None


def field_name_fault(name: str) -> str | None:
    """Why no field can be called this, as the end of a sentence; None if one can."""
    if not 1 <= len(name.encode("utf-8", "surrogatepass")) <= FIELD_NAME_BYTES_MAX:
        return f"must be 1 to {FIELD_NAME_BYTES_MAX} bytes of UTF-8"
    if any(unicodedata.category(letter) in ("Cc", "Cs") for letter in name):
        return "must not hold control characters"
    return None


def visible(name: str) -> str:
    """A name as every reader can show it: bytes of a file's name that are no UTF-8 stand as escapes."""
    return name.encode(errors="surrogateescape").decode(errors="backslashreplace")
