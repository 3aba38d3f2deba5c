"""Bodies of requests as they come in: each bounded, all together bounded, and none waited for without end.

What is still coming in is the one thing a stranger can make a server hold before it has said anything. So the sum is
bounded too (BUSY beyond it), and a sender who falls silent is let go.
"""

import asyncio
from collections.abc import Mapping

from starlette.types import Receive

from convmem.limits import BODIES_BYTES_MAX, BODY_BYTES_MAX, BODY_SILENCE_S_MAX
from convmem.transport.guard import Refusal

TOO_LARGE = Refusal(413, "CONTENT_TOO_LARGE", f"the body is larger than {BODY_BYTES_MAX} bytes")
TOO_SLOW = Refusal(
    408, "VALIDATION_ERROR", f"the body stopped for {BODY_SILENCE_S_MAX} seconds", ((b"connection", b"close"),)
)
CROWDED = Refusal(503, "BUSY", "too many large requests come in at once", ((b"retry-after", b"1"),))
STOPPING = Refusal(503, "STOPPING", "the daemon is going down; its successor will answer", ((b"retry-after", b"1"),))


class Bodies:
    """The bodies that are coming in now; `bytes_held` is what they hold together."""

    def __init__(self) -> None:
        self.bytes_held = 0

    async def read(self, headers: Mapping[bytes, bytes], receive: Receive) -> bytes | Refusal | None:
        """Return the body, or the refusal that says why there is none; None if the client went away."""
        declared = headers.get(b"content-length", b"0")
        if not declared.isdigit() or int(declared) > BODY_BYTES_MAX:
            return TOO_LARGE
        parts: list[bytes] = []
        size = 0
        try:
            while True:
                async with asyncio.timeout(BODY_SILENCE_S_MAX):
                    message = await receive()
                if message["type"] == "http.disconnect":
                    return None
                part = message.get("body", b"")
                size, self.bytes_held = size + len(part), self.bytes_held + len(part)
                if size > BODY_BYTES_MAX:
                    return TOO_LARGE
                if self.bytes_held > BODIES_BYTES_MAX:
                    return CROWDED
                parts.append(part)
                if not message.get("more_body"):
                    return b"".join(parts)
        except TimeoutError:
            return TOO_SLOW
        except asyncio.CancelledError:  # only the end of the grace at a stop cancels a request
            return STOPPING
        finally:
            self.bytes_held -= size
