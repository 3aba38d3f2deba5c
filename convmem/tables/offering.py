"""How the tools of tables are offered: what they all say alike, so that each says only what is its own."""

from collections.abc import Awaitable, Callable
from typing import Any

from convmem.domain import Answer, Tool
from convmem.inputs import Input
from convmem.reach import Reach

Handle = Callable[[Any, Any], Awaitable[Answer]]


def reads(name: str, title: str, description: str, ask: type[Input], handle: Handle) -> Tool:
    """A tool that changes nothing."""
    return Tool(
        name=name,
        title=title,
        description=description,
        input=ask,
        handle=handle,
        scope="read",
        reads_only=True,
        idempotent=True,
    )


def writes(
    name: str,
    title: str,
    description: str,
    ask: type[Input],
    handle: Handle,
    *,
    destructive: bool = True,
    scope: Reach = "write",
) -> Tool:
    """A tool that changes something; `destructive` if what was there may be gone."""
    return Tool(
        name=name,
        title=title,
        description=description,
        input=ask,
        handle=handle,
        scope=scope,
        reads_only=False,
        destructive=destructive,
    )
