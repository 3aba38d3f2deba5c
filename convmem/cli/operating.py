"""Operating the store, wherever it is: a verb of /admin from whoever holds it, else the same work in this process."""

from collections.abc import Callable, Mapping
from typing import Any

import typer

from convmem.cli import progress
from convmem.cli.asking import reach
from convmem.cli.progress import Tell
from convmem.config import Settings


def operate(
    context: typer.Context,
    verb: str,
    arguments: Mapping[str, Any],
    *,
    data_dir: str | None,
    url: str | None,
    token_file: str | None,
    own: Callable[[Settings, Tell], Mapping[str, Any]],
    needs_store: bool = True,
) -> Mapping[str, Any]:
    """Return the verb's facts, with a progress bar meanwhile; raises what it refuses with.

    The local socket comes first, then the address in the lock; `own` does the work here if nobody holds the store, and
    raises StoreLocked if somebody does. With `needs_store` it is not reached where there is no store: CallFailed.
    """
    from convmem.cli.streaming import ask

    with progress.shown() as tell:
        return reach(
            context,
            data_dir=data_dir,
            url=url,
            token_file=token_file,
            there=lambda place: ask(place, verb, arguments, tell),
            here=lambda settings: own(settings, tell),
            needs_store=needs_store,
        )
