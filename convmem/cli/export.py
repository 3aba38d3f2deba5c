"""convmem export: the whole store as one file of JSON Lines."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from convmem.cli import progress
from convmem.cli.asking import CallFailed, reach
from convmem.cli.printing import print_bytes, print_text
from convmem.cli.start import URL, DataDir, TokenFile, path_of
from convmem.config import Settings

if TYPE_CHECKING:
    from convmem.cli.call import Place

STDOUT = "-"
File = Annotated[str, typer.Argument(metavar="FILE", help="the file to write, - for stdout")]


class Export:
    """What comes, counted: an export is whole when it holds as many records as its first line promises."""

    def __init__(self, write: Callable[[bytes], object], tell: progress.Tell) -> None:
        self._write = write
        self._tell = tell
        self._lines = 0
        self._promised: int | None = None
        self._is_ended = True

    def take(self, piece: bytes) -> None:
        """Write one piece."""
        # Imported here, like all that only a running verb needs.
        from convmem.cli.call import decoded

        if self._promised is None:
            self._promised = int(decoded(piece.partition(b"\n")[0])["records"])
        self._write(piece)
        self._lines += piece.count(b"\n")
        self._is_ended = piece.endswith(b"\n")
        self._tell(self._lines - 1, self._promised, "exporting")

    def end(self) -> int:
        """How many records there are; CallFailed if some are missing."""
        if self._promised is None or self._lines - 1 != self._promised or not self._is_ended:
            raise CallFailed("the export broke off in the middle; no file was made")
        return self._promised


def export(
    context: typer.Context,
    file: File,
    data_dir: DataDir = None,
    url: URL = None,
    token_file: TokenFile = None,
) -> None:
    """Write everything into FILE, one record a line; the file appears once it is whole."""

    def there(place: "Place", taken: Export) -> int:
        from convmem.cli.streaming import download

        for piece in download(place, "/export"):
            taken.take(piece)
        return taken.end()

    def here(settings: Settings, taken: Export) -> int:
        from convmem import offline

        offline.export(settings, taken.take)
        return taken.end()

    def run(write: Callable[[bytes], object], tell: progress.Tell) -> int:
        taken = Export(write, tell)
        return reach(
            context,
            data_dir=data_dir,
            url=url,
            token_file=token_file,
            there=lambda place: there(place, taken),
            here=lambda settings: here(settings, taken),
        )

    with progress.shown() as tell:
        if file == STDOUT:
            run(print_bytes, tell)
            return
        path = path_of(context, file)
        from convmem.files import appearing

        try:
            with appearing(path) as write:
                count = run(write, tell)
        except OSError as error:
            raise CallFailed(f"{path} cannot be written ({error.strerror}); no file was made") from None
    print_text(f"{count} records in {path}")
