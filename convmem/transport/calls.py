"""One line of the journal for each call: who asked what, what came of it, and how long that took.

The request is named by the id that its caller gave it (JSON-RPC section 4), so the lines of both sides can be laid side
by side. Of what was said and answered nothing stands there but the name of the tool and the code of a refusal.

Rejected: an id of our own in a header. Few clients show headers, all of them know their own ids.
"""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from convmem.domain import Origin
from convmem.limits import SEEN_CODE_POINTS_MAX
from convmem.transport.jsonrpc import Id

logger = logging.getLogger("convmem")
UNANSWERED = "unanswered"


@dataclass
class Call:
    """`outcome`: ok, the code of a refusal, or that nobody was answered: a fault of ours, or a caller who went away."""

    outcome: str = UNANSWERED


@contextmanager
def told(name: str, origin: Origin, request_id: Id | None = None) -> Iterator[Call]:
    """Tell the journal of a call when it is over; the block says its outcome."""
    time = asyncio.get_running_loop().time
    begun_s, call = time(), Call()
    try:
        yield call
    finally:
        ms = round((time() - begun_s) * 1000)
        seen = request_id[:SEEN_CODE_POINTS_MAX] if isinstance(request_id, str) else request_id
        facts = {"request": seen, "device": origin.device, "client": origin.client, "tool": name}
        named = "" if seen is None else f" request {seen}"
        client = f" ({origin.client})" if origin.client else ""
        logger.info(
            "%s from %s%s%s: %s in %s ms",
            *(name, origin.device, client, named, call.outcome, ms),
            extra={"facts": facts | {"outcome": call.outcome, "ms": ms}},
        )
