"""A progress bar on stderr while something takes long: for people at a terminal, nothing at all for anybody else.

Results go to stdout, so a bar never mixes with them. What is told comes from a daemon too, and is shown with nothing
hidden in it. A signal unwinds what is done meanwhile, so that the terminal is as it was and no half of a file stays.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from convmem import stopping
from convmem.cli.journal import visible

Tell = Callable[[float, float, str], None]


@contextmanager
def shown(stream: TextIO | None = None) -> Iterator[Tell]:
    """A function `tell(done, total, sentence)` for the block; a total of 0 says that nobody knows how much it is.

    It may be called from any thread and as often as it pleases whoever calls.
    """
    stream = sys.stderr if stream is None else stream
    with stopping.raised():
        if stream.isatty():
            with _bar(stream) as tell:
                yield tell
        else:
            yield lambda done, total, sentence: None


@contextmanager
def _bar(stream: TextIO) -> Iterator[Tell]:
    # Imported here: a pipe does without.
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(file=stream), transient=True) as bar:
        task = bar.add_task("", total=None)

        def tell(done: float, total: float, sentence: str) -> None:
            bar.update(task, completed=done, total=total or None, description=visible(sentence))

        yield tell
