"""convmem check: walk all invariants of the store, the log from its first byte and the index against a fresh fold."""

import typer

from convmem.cli.asking import need_store
from convmem.cli.printing import print_json, print_text
from convmem.cli.start import AsJSON, DataDir, settings_of

VIOLATED = 1


def check(context: typer.Context, data_dir: DataDir = None, as_json: AsJSON = False) -> None:
    """Check the store, beside a running daemon or without one; changes nothing."""
    settings = settings_of(context, data_dir=data_dir)
    need_store(settings)
    from convmem import daemon

    violations = daemon.check(settings)
    if as_json:
        print_json({"violations": violations})
    else:
        print_text("\n".join(violations) or "OK")
    raise typer.Exit(VIOLATED if violations else 0)
