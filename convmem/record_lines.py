"""What every record of a file of records (JSON Lines) has, whatever it is: times, an origin, and a line that is one
line for every reader.

JSON escapes what is below U+0020. There are more characters at which some reader or other ends a line, so these are
escaped too.
"""

import re
from typing import Annotated

import msgspec
from msgspec import UNSET, UnsetType
from pydantic import Field

from convmem.domain import Origin
from convmem.inputs import WITHOUT_NUL, Input, sized
from convmem.limits import CLIENT_BYTES_MAX, DEVICE_BYTES_MAX, TIME_MS_MAX, TRANSPORT_BYTES_MAX

UNSAFE = re.compile("[\x7f-\x9f\u2028\u2029]")
# What the UTF-8 of each of them holds.
DELETE, C1, LINE, PARAGRAPH = b"\x7f", b"\xc2", b"\xe2\x80\xa8", b"\xe2\x80\xa9"

Time = Annotated[int, Field(ge=0, le=TIME_MS_MAX)]


def escaped(encoded: bytes) -> bytes:
    """JSON in which nothing ends a line for anybody."""
    # Looking for bytes is ten times quicker than the pattern, and nearly no line has any of them.
    if DELETE not in encoded and C1 not in encoded and LINE not in encoded and PARAGRAPH not in encoded:
        return encoded
    return UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", encoded.decode()).encode()


class OriginRead(Input):
    """Where a record came from, in a stranger's line."""

    device: Annotated[str, WITHOUT_NUL, sized(1, DEVICE_BYTES_MAX)]
    transport: Annotated[str, WITHOUT_NUL, sized(0, TRANSPORT_BYTES_MAX)]
    client: Annotated[str, sized(0, CLIENT_BYTES_MAX)] | None = None


class OriginLine(msgspec.Struct):
    """Where a record came from, as it is written and read back."""

    device: str
    transport: str
    client: str | UnsetType | None = UNSET

    @property
    def origin(self) -> Origin:
        """The same as the store holds it."""
        return Origin(self.device, self.transport, None if self.client is UNSET else self.client)


def origin_line(origin: Origin) -> OriginLine:
    """An origin as it is written."""
    return OriginLine(origin.device, origin.transport, UNSET if origin.client is None else origin.client)
