"""python -m convmem: hands the process's arguments, environment and working directory to the command line."""

from __future__ import annotations

import gc
import os
import sys
from types import TracebackType

# Importing it takes a quarter of the time that the client for hooks has.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

# How stdin, stdout and stderr are opened where they are closed.
STANDARD_STREAMS = (os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)
STDOUT, INTERRUPTED = 1, 130
CAPTURE, HELP = "capture", {"--help", "-h"}


def main() -> None:
    """Run the command line and end the process with its exit status.

    The garbage collector rests while the program is read: all of that stays. A daemon wakes it once it has loaded all,
    other verbs end before they would need it.
    """
    gc.disable()
    if sys.argv[1:2] == [CAPTURE] and HELP.isdisjoint(sys.argv[2:]):
        run_capture()
    end_at_once_when_interrupted()
    from pathlib import Path

    from convmem.cli import run

    occupy_standard_streams()
    try:
        working_directory = Path.cwd()
    except OSError:
        working_directory = None
    status = run(sys.argv[1:], os.environ, working_directory)
    end_at_once_when_interrupted()
    drop_what_cannot_be_written()
    sys.exit(status)


def run_capture() -> NoReturn:
    """Run the client for hooks before anything is read that it does not need, and end with status 0.

    Its host goes on whatever happens, and hears nothing of a fault of ours. An interrupt is meant for the host; only
    where a person waits for a delivery does it end that.
    """
    is_in_front, is_verbose = "--drain" in sys.argv, "--verbose" in sys.argv
    sys.excepthook = lambda kind, fault, trace: end_after_fault(is_verbose, kind, fault, trace)
    # What `signal` itself is made of: its names for numbers take a tenth of the time that there is.
    import _signal  # type: ignore[import-not-found]

    _signal.signal(_signal.SIGINT, (lambda number, frame: os._exit(0)) if is_in_front else _signal.SIG_IGN)
    occupy_standard_streams()
    from convmem.hooks import capture

    try:
        working_directory = os.getcwd()
    except OSError:
        working_directory = "/"
    capture.run(sys.argv[2:], os.environ, working_directory)
    drop_what_cannot_be_written()
    os._exit(0)


def end_after_fault(
    is_told: bool, kind: type[BaseException], fault: BaseException, trace: TracebackType | None
) -> None:
    """End as if nothing had happened, if need be after telling what did."""
    if is_told:
        sys.__excepthook__(kind, fault, trace)
    os._exit(0)


def end_at_once_when_interrupted() -> None:
    """Let SIGINT end the process without a word. Where that would leave something half done, the work sees to it.

    One that is ignored stays ignored: whoever started the process wants that.
    """
    import signal

    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, lambda number, frame: os._exit(INTERRUPTED))


def occupy_standard_streams() -> None:
    """Put /dev/null where stdin, stdout or stderr is closed.

    Else the next file or socket would get its number: a stray print would go into it, and libuv aborts on closing it.
    A result for a stdout that is closed must fail, so nothing can be written to what stands there.
    """
    for number, mode in enumerate(STANDARD_STREAMS):
        try:
            os.fstat(number)
        except OSError:
            # The lowest number that is free, which is this one.
            os.open(os.devnull, mode)
            os.set_inheritable(number, True)
    for name, number in (("stdout", 1), ("stderr", 2)):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "w", closefd=False))


def drop_what_cannot_be_written() -> None:
    """Let go of what a failed write has left in stdout: whoever wrote it has said so, and the interpreter would try
    again at its end and say so in its own words.
    """
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), STDOUT)


if __name__ == "__main__":
    main()
