"""A process of its own for work that a hook leaves behind: its host waits neither for it nor for its pipes.

The right to deliver goes along: the lock belongs to both processes until the hook's own ends, so it is never free in
between, and no second process is begun while one is at work.
"""

import gc
import os
from collections.abc import Callable

from convmem import file_descriptors
from convmem.hooks.spool import Claim


def begin(claim: Claim, work: Callable[[Claim], object]) -> None:
    """Have `work` done with the claim by a process that belongs to nobody. Without one the claim is given back: the
    events are safe, and the next hook tries again.
    """
    try:
        child = os.fork()
        if child == 0:
            _detached(claim, work)
        os.waitpid(child, 0)
    except OSError:
        pass  # Too many processes, or no memory for one more.
    claim.close()


def _detached(claim: Claim, work: Callable[[Claim], object]) -> None:
    """In the child: leave the host's session, let a grandchild work, and end."""
    try:
        os.setsid()
        if os.fork() == 0:
            file_descriptors.let_go_of_everything(claim.descriptor)
            os.chdir("/")
            claim.tell()
            gc.enable()
            work(claim)
    finally:
        # Whatever happened: nothing of the hook's own end is to be done twice.
        os._exit(0)
