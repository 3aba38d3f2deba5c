"""convmem compact: drop what is dead from the log, and make its index anew."""

from collections.abc import Mapping
from typing import Any

import typer

from convmem.cli.operating import operate
from convmem.cli.printing import print_json, print_text
from convmem.cli.progress import Tell
from convmem.cli.start import URL, AsJSON, DataDir, TokenFile
from convmem.config import Settings


def compact(
    context: typer.Context,
    data_dir: DataDir = None,
    url: URL = None,
    token_file: TokenFile = None,
    as_json: AsJSON = False,
) -> None:
    """Drop deleted messages and superseded texts from the files; reads and writes go on meanwhile."""
    facts = operate(context, "compact", {}, data_dir=data_dir, url=url, token_file=token_file, own=_own)
    if as_json:
        print_json(facts)
    else:
        print_text(_sentence(facts))


def _own(settings: Settings, tell: Tell) -> Mapping[str, Any]:
    from convmem import daemon

    return daemon.compact(settings, tell)


def _sentence(facts: Mapping[str, Any]) -> str:
    if not facts["rebuilt"]:
        return f"nothing to do: {facts['live']} records, {facts['log_bytes_before']:,} bytes of log"
    return (
        f"{facts['log_bytes_before']:,} bytes of log are now {facts['log_bytes_after']:,}: {facts['removed']} deleted"
        f" records and {facts['dangling_removed']} references to what is gone were dropped, {facts['live']} records"
        f" live on in generation {facts['generation']} ({facts['duration_ms']:,} ms)"
    )
