"""The bridge: a client's lines go to a daemon as they are, its answers come back as lines, a restart goes unnoticed.

Nothing is known of the protocol's methods but what HTTP asks of a client (routing.py), and nothing is kept but what
`initialize` agreed on and which tools only read (answers.py).

A request whose connection broke off is sent again only if that can do no harm: it is no call of a tool, the tool only
reads, or the call carries an idempotency key. For any other call the honest answer is that nobody knows; a second
message would be worse. A request that reached no daemon waits for one, for BRIDGE_PATIENCE_MS; so does one that was
refused because the daemon is going down.

Notifications are not sent on: the daemon keeps nothing between requests that one could change. What is cancelled is
not answered; if it has begun it goes on to its end, as it would for a client that went away.
"""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from convmem import __version__
from convmem.limits import BRIDGE_PATIENCE_MS, BRIDGE_PAUSE_MS_MAX, BRIDGE_PAUSE_MS_MIN
from convmem.transport import answers, jsonrpc, routing
from convmem.transport.conversation import Conversation, Handshake, Taken
from convmem.transport.exchanges import Exchanges, failure
from convmem.transport.http_client import Headers, Lost, Unreachable
from convmem.transport.origins import client_of

logger = logging.getLogger("convmem")

UNKNOWN = "the connection broke off, so nobody knows whether this was done: look before you ask for it again"
HARMLESS = "nobody knows whether this was done, but asking for the same again does no harm"
# Asked where the client has not asked for the list itself. No handshake is needed for it.
LIST = jsonrpc.Request("convmem", "tools/list", None)
LIST_LINE = b'{"jsonrpc":"2.0","id":"convmem","method":"tools/list"}'


def pauses_ms() -> Iterator[int]:
    """The rests between attempts to reach a daemon, longer each time; together they are the patience."""
    left_ms, pause_ms = BRIDGE_PATIENCE_MS, BRIDGE_PAUSE_MS_MIN
    while left_ms > 0:
        yield min(pause_ms, left_ms)
        left_ms, pause_ms = left_ms - pause_ms, min(2 * pause_ms, BRIDGE_PAUSE_MS_MAX)


class Bridge:
    """Answers one conversation through a daemon elsewhere."""

    def __init__(self, conversation: Conversation, exchanges: Exchanges) -> None:
        self._conversation = conversation
        self._exchanges = exchanges
        self._has_asked_for_tools = False
        self._in_hand: dict[jsonrpc.Id, bool] = {}
        # Set once nobody shall wait for a daemon any more: the requests that do are put back, or at a stop refused.
        self._has_ended_waiting = asyncio.Event()
        self._is_stopping = False

    async def serve(self) -> None:
        """Answer every line; return when the input has ended, or after `stop` or `leave`, and nothing is in hand."""
        try:
            async with asyncio.TaskGroup() as tasks:
                async for taken, message in self._conversation.messages():
                    if isinstance(message, jsonrpc.Notification):
                        self._notified(message)
                        continue
                    self._in_hand[message.id] = False
                    answering = tasks.create_task(self._answer(taken, message, self._conversation.handshake))
                    if message.method == "tools/call" and not self._has_asked_for_tools:
                        # Before they must be known: whoever is asked may be gone then.
                        self._has_asked_for_tools = True
                        tasks.create_task(self._ask_for_tools())
                    if message.method == "initialize":
                        # What comes next speaks the version agreed on here.
                        await asyncio.wait((answering,))
        finally:
            self._exchanges.close()

    def stop(self) -> None:
        """Read no further; answer what is in hand, and what waits for a daemon with a refusal."""
        self._is_stopping = True
        self._conversation.stop()
        self._has_ended_waiting.set()

    def leave(self) -> None:
        """Hand over to another reader: what waits for a daemon is put back, what is in hand is answered."""
        self._conversation.hand_over()
        self._has_ended_waiting.set()

    def _notified(self, notification: jsonrpc.Notification) -> None:
        request_id: Any = (notification.params or {}).get("requestId")
        is_cancelled = notification.method == "notifications/cancelled" and type(request_id) in (int, str)
        if is_cancelled and request_id in self._in_hand:
            self._in_hand[request_id] = True

    async def _answer(self, taken: Taken, request: jsonrpc.Request, handshake: Handshake) -> None:
        try:
            # Gathered, so that a fault of ours comes back as a value and leaves the other calls alone.
            (answer,) = await asyncio.gather(self._answered(taken, request, handshake), return_exceptions=True)
            if isinstance(answer, BaseException):
                logger.error("%s ended by a fault", request.method, exc_info=answer)
                answer = jsonrpc.error(jsonrpc.internal_error(), request.id)
            if self._is_cancelled(request):
                return
            if answer is None:
                self._conversation.put_back(taken)
            else:
                await self._conversation.output.line(answer)
        finally:
            self._in_hand.pop(request.id, None)
            self._conversation.room.release()

    def _is_cancelled(self, request: jsonrpc.Request) -> bool:
        return self._in_hand.get(request.id, False)

    async def _answered(self, taken: Taken, request: jsonrpc.Request, handshake: Handshake) -> bytes | None:
        """The answer to a request; None if it is to be put back."""
        headers = self._headers(request, handshake)
        pauses = pauses_ms()
        lost: bytes | None = None
        while True:
            try:
                refusal = await self._asked(request, headers, taken.text)
                self._learn(request, refusal)
                if not answers.says_stopping(refusal):
                    return refusal
            except Unreachable as reason:
                refusal = failure(request.id, "UNREACHABLE", f"{reason}; nothing was done", retryable=True)
            except Lost as reason:
                if not await self._may_be_repeated(request):
                    logger.warning("%s was lost: %s", request.method, reason)
                    return failure(request.id, "OUTCOME_UNKNOWN", f"{reason}; {UNKNOWN}")
                refusal = lost = failure(request.id, "UNREACHABLE", f"{reason}; {HARMLESS}", retryable=True)
            if self._has_ended_waiting.is_set() and not self._is_stopping:
                return None
            pause_ms = next(pauses, None)
            if pause_ms is None or self._is_stopping or self._is_cancelled(request):
                # Once it was lost nobody knows what was done, whatever came of the attempts behind that.
                return lost or refusal
            await self._rest(pause_ms)

    async def _asked(self, request: jsonrpc.Request, headers: Headers, line: bytes) -> bytes:
        tell = self._conversation.output.line_if_idle
        is_repeatable = self._is_repeatable(request)
        return await self._exchanges.ask(request.id, headers, line, tell, is_repeatable=bool(is_repeatable))

    def _headers(self, request: jsonrpc.Request, handshake: Handshake) -> Headers:
        """Who asks, for a daemon that has seen no handshake, and what the request says."""
        own = client_of((request.params or {}).get("clientInfo")) if request.method == "initialize" else None
        client = own or handshake.client or f"convmem-stdio/{__version__}"
        return [(b"User-Agent", client.encode()), *routing.headers_of(request, handshake.version)]

    def _is_repeatable(self, request: jsonrpc.Request) -> bool | None:
        """True if a request may be sent twice; None if that cannot be told before the tools are known."""
        if request.method != "tools/call":
            return True
        params = request.params or {}
        arguments = params.get("arguments")
        if type(arguments) is dict and type(arguments.get("idempotency_key")) is str:
            return True
        read_only = self._conversation.read_only_tools
        return None if read_only is None else params.get("name") in read_only

    async def _may_be_repeated(self, request: jsonrpc.Request) -> bool:
        is_repeatable = self._is_repeatable(request)
        if is_repeatable is None:
            await self._answered(Taken(0, LIST_LINE), LIST, Handshake())
            is_repeatable = self._is_repeatable(request)
        return bool(is_repeatable)

    async def _ask_for_tools(self) -> None:
        """Ask once, unless the client has; a failure is none of the client's."""
        if self._conversation.read_only_tools is None:
            asked = self._asked(LIST, self._headers(LIST, Handshake()), LIST_LINE)
            (answer,) = await asyncio.gather(asked, return_exceptions=True)
            if isinstance(answer, bytes):
                self._learn(LIST, answer)

    def _learn(self, request: jsonrpc.Request, answer: bytes) -> None:
        """Keep what passes by of the two answers that matter later."""
        if request.method == "tools/list" and (names := answers.read_only_tools(answer)) is not None:
            self._conversation.read_only_tools = names
        elif request.method == "initialize" and (version := answers.agreed_version(answer)) is not None:
            client = client_of((request.params or {}).get("clientInfo"))
            self._conversation.handshake = Handshake(version, client)

    async def _rest(self, pause_ms: int) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(pause_ms / 1000):
                await self._has_ended_waiting.wait()
