"""convmem restore: make a store of a backup, in a data directory that holds none."""

from typing import Annotated

import typer

from convmem.cli import progress
from convmem.cli.backup import print_facts
from convmem.cli.start import AsJSON, DataDir, path_of, settings_of

Source = Annotated[str, typer.Argument(metavar="SRC")]


def restore(context: typer.Context, source: Source, data_dir: DataDir = None, as_json: AsJSON = False) -> None:
    """Make a store of a backup in an empty data directory; it is there only once replay has proven it."""
    settings = settings_of(context, data_dir=data_dir)
    from convmem import restoring

    with progress.shown() as tell:
        facts = restoring.restore(settings, path_of(context, source), tell)
    print_facts(facts, as_json=as_json)
