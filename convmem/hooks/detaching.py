"""A process of its own for work that a hook leaves behind: its host waits neither for it nor for its pipes.

The right to deliver goes along: the lock belongs to both processes until the hook's own ends, so it is never free in
between, and no second process is begun while one is at work.
"""

import gc
import os
from collections.abc import Callable

from convmem import file_descriptors
from convmem.hooks.claim import Claim


def begin(claim: Claim | None, work: Callable[[], object]) -> None:
    """Have `work` done by a process that belongs to nobody, which has the claim then, if there is one. Where no process
    can be begun the claim is given back: what waits is safe, and the next hook tries again.
    """
    try:
        child = os.fork()
        if child == 0:
            _detached(claim, work)
        os.waitpid(child, 0)
    except OSError:
        pass  # Too many processes, or no memory for one more.
    if claim is not None:
        claim.close()


def _detached(claim: Claim | None, work: Callable[[], object]) -> None:
    """In the child: leave the host's session, let a grandchild work, and end."""
    try:
        os.setsid()
        if os.fork() == 0:
            file_descriptors.let_go_of_everything(None if claim is None else claim.descriptor)
            os.chdir("/")
            if claim is not None:
                claim.tell()
            gc.enable()
            work()
    finally:
        # Whatever happened: nothing of the hook's own end is to be done twice.
        os._exit(0)
