"""Asking the store one question, wherever it is: another machine, whoever holds it here, or this process.

The local socket comes first, so a running daemon never makes a verb fail; only where nobody answers does the verb open
the store itself, for as long as the question takes.
"""

import os
from collections.abc import Callable, Generator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from convmem.cli.start import settings_of, start_of
from convmem.config import Settings, client_token
from convmem.errors import Busy, ConvmemError, SettingInvalid, StoreLocked

if TYPE_CHECKING:
    from convmem.cli.call import Explained, Place

LOG, INDEX = "convmem.log", "index-*.db"
Result = TypeVar("Result")
Ask = Callable[[str, Mapping[str, Any]], dict[str, Any]]
Question = tuple[str, Mapping[str, Any]]
# Questions, a tool and its arguments each, whose facts are sent back.
Steps = Generator[Question, Mapping[str, Any], Result]


class CallFailed(Exception):
    """The question did not come to an answer; the sentence says what to look at."""


def asker(context: typer.Context, *, data_dir: str | None, url: str | None, token_file: str | None) -> Ask:
    """Return a function that calls a tool by name and returns its facts. Raises what keeps it from being asked."""
    if url is not None:
        from convmem.cli.call import call

        place = place_of(context, url=url, token_file=token_file)
        return lambda tool, arguments: call(place, tool, arguments)
    settings = _own_settings(context, data_dir=data_dir, token_file=token_file)
    return lambda tool, arguments: _ask_here(settings, tool, arguments)


def ask_explained(
    context: typer.Context,
    tool: str,
    arguments: Mapping[str, Any],
    *,
    data_dir: str | None,
    url: str | None,
    token_file: str | None,
) -> "Explained":
    """The facts that a tool answers, and what each query on the store took. Raises as asking does."""
    from convmem import stopping
    from convmem.cli.call import call_explained

    return reach(
        context,
        data_dir=data_dir,
        url=url,
        token_file=token_file,
        there=lambda place: call_explained(place, tool, arguments),
        here=lambda settings: stopping.run(_ask_own_store(settings, tool, arguments)),
    )


def ask_often(
    context: typer.Context,
    steps: "Steps[Result]",
    *,
    data_dir: str | None,
    url: str | None,
    token_file: str | None,
) -> Result:
    """Ask what a generator yields, tool by tool, and return what it returns; the store is opened once at most.

    A refusal is thrown into the generator, which may go on. Raises as asking does.
    """
    from convmem import stopping

    first = next(steps)
    return reach(
        context,
        data_dir=data_dir,
        url=url,
        token_file=token_file,
        there=lambda place: _walked_there(place, steps, first),
        here=lambda settings: stopping.run(_walked_here(settings, steps, first)),
    )


def _walked_there(place: "Place", steps: "Steps[Result]", question: "Question") -> Result:
    from convmem.cli.call import NOBODY, call

    has_begun = False
    try:
        while True:
            try:
                facts = call(place, *question)
            except ConvmemError as refused:
                question = steps.throw(refused)
            except NOBODY:
                # Nobody else can be asked for the rest.
                if has_begun:
                    raise CallFailed(f"the daemon at {place} has ended in the middle") from None
                raise
            else:
                question = steps.send(facts)
            has_begun = True
    except StopIteration as ended:
        result: Result = ended.value
        return result


async def _walked_here(settings: Settings, steps: "Steps[Result]", question: "Question") -> Result:
    from convmem import daemon

    async with daemon.opened(settings) as (catalog, access):
        try:
            while True:
                try:
                    facts = (await _asked_here(catalog, access, *question)).facts
                except ConvmemError as refused:
                    question = steps.throw(refused)
                else:
                    question = steps.send(facts)
        except StopIteration as ended:
            result: Result = ended.value
    return result


def reach(
    context: typer.Context,
    *,
    data_dir: str | None,
    url: str | None,
    token_file: str | None,
    there: "Callable[[Place], Result]",
    here: Callable[[Settings], Result],
    needs_store: bool = True,
) -> Result:
    """Return `there(place)` of whoever holds the store, or of another machine; where nobody holds it, `here(settings)`.

    `there` raises one of call.NOBODY if no daemon listens on the local socket, `here` StoreLocked if one came first.
    With `needs_store`, `here` is not reached where there is none: CallFailed.
    """
    if url is not None:
        return there(place_of(context, url=url, token_file=token_file))
    settings = _own_settings(context, data_dir=data_dir, token_file=token_file)
    return _reach_here(settings, there, here, needs_store=needs_store)


def place_of(context: typer.Context, *, url: str, token_file: str | None) -> "Place":
    """The daemon at a URL, with the token from the file or from CONVMEM_TOKEN."""
    from convmem.cli.call import Place

    start = start_of(context)
    return Place(url=url, token=client_token(token_file, start.environment, start.working_directory))


def _own_settings(context: typer.Context, *, data_dir: str | None, token_file: str | None) -> Settings:
    if token_file is not None:
        raise SettingInvalid("--token-file goes with --url", setting="--token-file")
    return settings_of(context, data_dir=data_dir)


def need_store(settings: Settings) -> None:
    """Raise CallFailed where there is no store yet, not even the index of one: a question must not make one."""
    directory = settings.data_dir
    is_missing = not os.path.lexists(directory)
    is_empty = os.access(directory, os.X_OK) and not os.path.lexists(directory / LOG) and not any(directory.glob(INDEX))
    if is_missing or is_empty:
        raise CallFailed(f"there is no store in {directory} yet: `convmem serve` makes one")


def _ask_here(settings: Settings, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    # Imported here, like all that only a question needs: HTTP brings TLS and the parser of e-mail headers along.
    from convmem.cli.call import call

    def ask_own_store(settings: Settings) -> dict[str, Any]:
        from convmem import stopping

        return stopping.run(_ask_own_store(settings, tool, arguments)).facts

    return _reach_here(settings, lambda place: call(place, tool, arguments), ask_own_store)


def _reach_here(
    settings: Settings,
    there: "Callable[[Place], Result]",
    here: Callable[[Settings], Result],
    *,
    needs_store: bool = True,
) -> Result:
    from convmem.cli.call import NOBODY, Place, place_of_holder

    if settings.socket is not None:
        try:
            return there(Place(socket=settings.socket))
        except NOBODY:
            pass  # Nobody holds the store, so that it can be opened here; or it is not for us, which opening it says.
    if needs_store:
        need_store(settings)
    try:
        return here(settings)
    except StoreLocked as locked:
        # Somebody holds it whose socket cannot be reached: its address may be.
        place = place_of_holder(locked.details["holder"], settings.http_token)
        if place is None:
            raise
        return there(place)


async def _ask_own_store(settings: Settings, tool: str, arguments: Mapping[str, Any]) -> "Explained":
    from convmem import daemon

    async with daemon.opened(settings) as (catalog, access):
        return await _asked_here(catalog, access, tool, arguments)


async def _asked_here(catalog: Any, access: Any, tool: str, arguments: Mapping[str, Any]) -> "Explained":
    import asyncio

    from convmem.cli.call import Explained, refusal

    reply = await catalog.call(catalog.tools[tool], arguments, access)
    while reply.refused and reply.facts["error"]["code"] == Busy.code:
        # Only the making of the index can be in the way here: it ends, and a person would rather wait for it.
        await asyncio.sleep(reply.facts["error"]["retry_after_ms"] / 1000)
        reply = await catalog.call(catalog.tools[tool], arguments, access)
    if reply.refused:
        raise refusal(reply.facts["error"])
    return Explained(dict(reply.facts), [(visit.stage, visit.ms) for visit in access.visits])
