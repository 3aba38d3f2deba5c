"""The right to deliver what waits in a spool: one process has it at a time, and another one may ask for it.

It is the lock of a file, so it ends with the process that has it, however that ends.
"""

import os
from contextlib import suppress

from convmem import file_descriptors as disk
from convmem.clock import Clock, sleep_ms

# How the file begins: somebody has the right, or somebody else asks for it. A pid follows.
HELD, ASKED, PID_DIGITS = b" ", b"?", 12


class Claim:
    """The right, for whoever holds the lock of this open file. Closed, or left by the end of its process, it is free
    again. The file says who has it and whether somebody else asks for it; a full disk is no reason to have less of it.
    """

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        with suppress(OSError):
            disk.overwrite(descriptor, 0, HELD)
        self.tell()

    def tell(self) -> None:
        """Say that it is this process that has it, beside what was asked meanwhile."""
        with suppress(OSError):
            disk.overwrite(self.descriptor, len(HELD), b"%*d" % (PID_DIGITS, os.getpid()))

    def is_over(self) -> bool:
        """Whether somebody else waits for it, or its file was removed and the spool with it."""
        return disk.read(self.descriptor, 0, 1) == ASKED or not disk.is_linked(self.descriptor)

    def close(self) -> None:
        """Give it back."""
        disk.close(self.descriptor)


def claimed(path: str) -> Claim | None:
    """The right whose file this is, if nobody has it. OSError."""
    descriptor = disk.open_file(path)
    if disk.lock(descriptor):
        return Claim(descriptor)
    disk.close(descriptor)
    return None


def asked_for(path: str, wait_ms: int, clock: Clock) -> Claim | None:
    """The same for somebody who waits for so long: whoever has the right is asked to leave it. OSError."""
    descriptor = disk.open_file(path)
    if not disk.lock(descriptor):
        disk.overwrite(descriptor, 0, ASKED)
        if not disk.lock_within(descriptor, wait_ms, clock.monotonic_ms, sleep_ms):
            disk.close(descriptor)
            return None
    return Claim(descriptor)
