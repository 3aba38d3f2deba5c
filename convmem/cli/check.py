"""convmem check: walk all invariants of the store, the log from its first byte and the index against a fresh fold."""

from collections.abc import Mapping
from typing import Any

import typer

from convmem.cli import progress
from convmem.cli.asking import need_store, place_of
from convmem.cli.printing import print_json, print_text
from convmem.cli.start import URL, AsJSON, DataDir, TokenFile, settings_of
from convmem.errors import SettingInvalid

VIOLATED = 1


def check(
    context: typer.Context,
    data_dir: DataDir = None,
    url: URL = None,
    token_file: TokenFile = None,
    as_json: AsJSON = False,
) -> None:
    """Check the store, beside a running daemon or without one; changes nothing."""
    facts = _found(context, data_dir, url, token_file)
    if as_json:
        print_json(facts)
    else:
        print_text("\n".join(facts["violations"]) or "OK")
        for sentence in facts["leftovers"]:
            typer.echo(sentence, err=True)
    raise typer.Exit(VIOLATED if facts["violations"] else 0)


def _found(context: typer.Context, data_dir: str | None, url: str | None, token_file: str | None) -> Mapping[str, Any]:
    """What another machine's daemon finds; of a store on this machine the files say it, whoever holds them."""
    with progress.shown() as tell:
        if url is not None:
            from convmem.cli.streaming import ask

            return ask(place_of(context, url=url, token_file=token_file), "check", {}, tell)
        if token_file is not None:
            raise SettingInvalid("--token-file goes with --url", setting="--token-file")
        settings = settings_of(context, data_dir=data_dir)
        need_store(settings)
        from convmem import daemon

        return daemon.check(settings, tell)
