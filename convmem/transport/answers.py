"""What a bridge reads of the answers that pass by: little, and only of the shapes that convmem gives them.

Whatever has another shape says nothing, and is passed on all the same.
"""

from contextlib import suppress
from typing import Generic, TypeVar

import msgspec

Result = TypeVar("Result")
STOPPING = "STOPPING"
# No text inside an answer holds these bytes, since a quote inside of a string is escaped: most need not be read.
STOPPING_MARK = b'"%b"' % STOPPING.encode()


class Hints(msgspec.Struct, rename={"reads_only": "readOnlyHint"}):
    """The annotations of a tool, as far as they matter here."""

    reads_only: bool = False


class ListedTool(msgspec.Struct):
    """A tool in a list."""

    name: str
    annotations: Hints = msgspec.field(default_factory=Hints)


class ToolList(msgspec.Struct):
    """What `tools/list` answers."""

    tools: list[ListedTool]


class Agreement(msgspec.Struct, rename="camel"):
    """What `initialize` answers."""

    protocol_version: str


class Code(msgspec.Struct):
    """What an error is called."""

    code: str


class Failing(msgspec.Struct):
    """The facts of a tool that has failed."""

    error: Code


class Failed(msgspec.Struct, rename="camel"):
    """What a tool answers that has failed."""

    structured_content: Failing


class Refusal(msgspec.Struct):
    """An error of the protocol, as the HTTP side gives it before it reads a body."""

    data: Code


class Refused(msgspec.Struct):
    """A refused request."""

    error: Refusal


class Answered(msgspec.Struct, Generic[Result]):
    """A successful answer."""

    result: Result


def read_only_tools(answer: bytes) -> frozenset[str] | None:
    """The tools that only read, by name, of an answer to `tools/list`; None if it is none."""
    with suppress(msgspec.DecodeError):
        listed = msgspec.json.decode(answer, type=Answered[ToolList]).result.tools
        return frozenset(tool.name for tool in listed if tool.annotations.reads_only)
    return None


def agreed_version(answer: bytes) -> str | None:
    """The version of an answer to `initialize`; None if it is none."""
    with suppress(msgspec.DecodeError):
        return msgspec.json.decode(answer, type=Answered[Agreement]).result.protocol_version
    return None


def says_stopping(answer: bytes) -> bool:
    """True if a daemon that is going down has refused the request, so that nothing was done and its successor will do
    it.
    """
    if STOPPING_MARK not in answer:
        return False
    with suppress(msgspec.DecodeError):
        return msgspec.json.decode(answer, type=Answered[Failed]).result.structured_content.error.code == STOPPING
    with suppress(msgspec.DecodeError):
        return msgspec.json.decode(answer, type=Refused).error.data.code == STOPPING
    return False
