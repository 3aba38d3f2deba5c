"""HTTP/1.1 with a bound on the head of a request: request line and headers, as they arrive.

uvicorn's fast parser collects headers without end before the application sees anything. Here it is stopped at
HEADERS_BYTES_MAX (and one read) with 431. What it lets through is measured again, exactly, by the guard.

What is refused here is answered like any other refusal, and the connection ends: where the next request would begin is
not known any more.
"""

import re

import msgspec
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from convmem.limits import HEADERS_BYTES_MAX


def _answer(status: str, sentence: str) -> bytes:
    """A whole answer with the body that all errors have."""
    body = msgspec.json.encode({"error": {"code": "VALIDATION_ERROR", "message": sentence, "retryable": False}})
    head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\nconnection: close"
    return head.encode() + b"\r\n\r\n" + body


TOO_LARGE = _answer("431 Request Header Fields Too Large", f"the headers are larger than {HEADERS_BYTES_MAX} bytes")
MALFORMED = _answer("400 Bad Request", "this is no request of HTTP/1.1, or its body is not as its headers say")
# A request to a proxy names a host in its target, and that host would have to win over Host (RFC 9112 section 3.2.2).
# We are no proxy: such a target is refused, so that the host that is checked is the host that was meant.
FOREIGN_TARGET = _answer("400 Bad Request", "the request target must begin with /")
UPGRADE = re.compile(rb"\r\nupgrade:", re.IGNORECASE)


class HeadBoundProtocol(HttpToolsProtocol):
    """uvicorn's protocol on httptools that gives up on a head that does not end."""

    head_bytes = 0
    is_in_head = True
    has_completed = False

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        # uvicorn takes the timer back only at an orderly end: a connection that was reset would be kept until it fires.
        self._unset_keepalive_if_required()

    def on_headers_complete(self) -> None:
        self.is_in_head = False
        # What only the connection knows and can do, for answers that take long (ASGI lets servers add such things).
        self.scope["extensions"] = {
            "convmem.connection": {"is_lost": self.transport.is_closing, "abort": self.transport.abort}
        }
        if self.url.startswith(b"/"):
            super().on_headers_complete()
        elif not self.transport.is_closing():
            self.transport.write(FOREIGN_TARGET)
            self.transport.close()

    def send_400_response(self, msg: str) -> None:
        """Refuse what the parser cannot read. Into an answer that has begun nothing is put: it is seen to break off."""
        if not self.transport.is_closing():
            if self.cycle is None or self.cycle.response_complete or not self.cycle.response_started:
                self.transport.write(MALFORMED)
            self.transport.close()

    def _unsupported_upgrade_warning(self) -> None:
        """Nothing is said about an upgrade that is not taken: the request is served as it is."""

    def on_message_complete(self) -> None:
        super().on_message_complete()
        # What else came with the end of this message is not counted: at most one read.
        self.is_in_head, self.head_bytes = True, 0
        self.has_completed = True

    def data_received(self, data: bytes) -> None:
        self.has_completed = False
        if self.is_in_head and b"pgrade" in data:
            data = without_upgrade(data)
        super().data_received(data)
        if not self.is_in_head or self.has_completed:
            return
        self.head_bytes += len(data)
        if self.head_bytes > HEADERS_BYTES_MAX and not self.transport.is_closing():
            self.transport.write(TOO_LARGE)
            self.transport.close()


def without_upgrade(data: bytes) -> bytes:
    """The bytes of a request with its offer to change the protocol made a header that means nothing.

    The parser believes the offer and drops the body behind it; clients that offer HTTP/2 (h2c) with every call could
    not call at all. A server may ignore the offer (RFC 9110 section 7.8), and we take none.
    """
    head, end, body = data.partition(b"\r\n\r\n")
    return UPGRADE.sub(b"\r\nx-offered:", head) + end + body
