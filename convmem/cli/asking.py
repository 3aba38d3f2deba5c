"""Asking the store one question, wherever it is: another machine, whoever holds it here, or this process.

The local socket comes first, so a running daemon never makes a verb fail; only where nobody answers does the verb open
the store itself, for as long as the question takes.
"""

import os
from collections.abc import Callable, Mapping
from typing import Any

import typer

from convmem.cli.start import settings_of, start_of
from convmem.config import Settings, client_token
from convmem.errors import Busy, SettingInvalid, StoreLocked

LOG = "convmem.log"
Ask = Callable[[str, Mapping[str, Any]], dict[str, Any]]


class CallFailed(Exception):
    """The question did not come to an answer; the sentence says what to look at."""


def asker(context: typer.Context, *, data_dir: str | None, url: str | None, token_file: str | None) -> Ask:
    """Return a function that calls a tool by name and returns its facts. Raises what keeps it from being asked."""
    if url is not None:
        from convmem.cli.call import Place, call

        start = start_of(context)
        place = Place(url=url, token=client_token(token_file, start.environment, start.working_directory))
        return lambda tool, arguments: call(place, tool, arguments)
    if token_file is not None:
        raise SettingInvalid("--token-file goes with --url", setting="--token-file")
    settings = settings_of(context, data_dir=data_dir)
    return lambda tool, arguments: _ask_here(settings, tool, arguments)


def need_store(settings: Settings) -> None:
    """Raise CallFailed where there is no store yet: a question must not make one."""
    is_missing = not os.path.lexists(settings.data_dir)
    if is_missing or (os.access(settings.data_dir, os.X_OK) and not os.path.lexists(settings.data_dir / LOG)):
        raise CallFailed(f"there is no store in {settings.data_dir} yet: `convmem serve` makes one")


def _ask_here(settings: Settings, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    # Imported here, like all that only a question needs: HTTP brings TLS and the parser of e-mail headers along.
    from convmem.cli.call import NOBODY, Place, call, place_of_holder

    if settings.socket is not None:
        try:
            return call(Place(socket=settings.socket), tool, arguments)
        except NOBODY:
            pass  # Nobody holds the store, so that it can be opened here; or it is not for us, which opening it says.
    need_store(settings)
    import asyncio

    try:
        return asyncio.run(_ask_own_store(settings, tool, arguments))
    except StoreLocked as locked:
        # Somebody holds it whose socket cannot be reached: its address may be.
        place = place_of_holder(locked.details["holder"], settings.http_token)
        if place is None:
            raise
        return call(place, tool, arguments)


async def _ask_own_store(settings: Settings, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    import asyncio

    from convmem import daemon
    from convmem.cli.call import refusal

    async with daemon.opened(settings) as (catalog, access):
        reply = await catalog.call(catalog.tools[tool], arguments, access)
        while reply.refused and reply.facts["error"]["code"] == Busy.code:
            # Only the making of the index can be in the way here: it ends, and a person would rather wait for it.
            await asyncio.sleep(reply.facts["error"]["retry_after_ms"] / 1000)
            reply = await catalog.call(catalog.tools[tool], arguments, access)
    if reply.refused:
        raise refusal(reply.facts["error"])
    return dict(reply.facts)
