"""python -m convmem: hands the process's arguments, environment and working directory to the command line."""

import gc
import os
import sys
from pathlib import Path

STANDARD_STREAMS = 3


def main() -> None:
    """Run the command line and end the process with its exit status.

    The garbage collector rests while the program is read: all of that stays. A daemon wakes it once it has loaded all,
    other verbs end before they would need it.
    """
    gc.disable()
    from convmem.cli import run

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
