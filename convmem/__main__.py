"""python -m convmem: hands the process's arguments, environment and working directory to the command line."""

import os
import sys
from pathlib import Path

from convmem.cli import run

STANDARD_STREAMS = 3


def main() -> None:
    """Run the command line and end the process with its exit status."""
    occupy_standard_streams()
    try:
        working_directory = Path.cwd()
    except OSError:
        working_directory = None
    sys.exit(run(sys.argv[1:], os.environ, working_directory))


def occupy_standard_streams() -> None:
    """Put /dev/null where stdin, stdout or stderr is closed.

    Else the next file or socket would get its number: a stray print would go into it, and libuv aborts on closing it.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) < STANDARD_STREAMS:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    for name, number in (("stdout", 1), ("stderr", 2)):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "w", closefd=False))


if __name__ == "__main__":
    main()
