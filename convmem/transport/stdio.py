"""MCP on stdin and stdout, answered by the store in this process: every line answered, nothing else ever on stdout.

The SDK's own stdio transport leaves a caller waiting for ever after a line it cannot parse; here the line is read by
the same strict parser as a request over HTTP and answered by the same kernel.

Requests run side by side and begin in the order in which they came. The end of input ends nothing that has begun.
"""

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from convmem.domain import Origin
from convmem.transport import jsonrpc
from convmem.transport.conversation import Conversation, Handshake
from convmem.transport.loading import Loading
from convmem.transport.origins import client_of

if TYPE_CHECKING:
    from convmem.transport.protocol import Kernel

logger = logging.getLogger("convmem")


class Stdio:
    """Answers one conversation."""

    def __init__(self, loading: Loading, profile: str, conversation: Conversation) -> None:
        self._loading = loading
        self._profile = profile
        self._conversation = conversation
        self._output = conversation.output
        self._cancellable: dict[jsonrpc.Id, asyncio.Task[None]] = {}

    async def serve(self) -> None:
        """Answer every line; return when the input has ended (or `stop` was called) and all is answered.

        To end it early call `stop`: a cancellation could cut a line that is being written.
        """
        kernel = await self._loading.wait()
        self._conversation.read_only_tools = kernel.read_only_tools
        async with asyncio.TaskGroup() as tasks:
            async for _, message in self._conversation.messages():
                if isinstance(message, jsonrpc.Notification):
                    self._notified(message)
                elif message.method == "initialize":
                    # Inline: what comes next speaks the version agreed on here.
                    await self._answer(message, kernel, self._conversation.handshake)
                else:
                    self._begin(message, kernel, tasks)

    def stop(self) -> None:
        """Read no further; what was read is answered."""
        self._conversation.stop()

    def _begin(self, request: jsonrpc.Request, kernel: "Kernel", tasks: asyncio.TaskGroup) -> None:
        task = tasks.create_task(self._answer(request, kernel, self._conversation.handshake))
        if kernel.may_be_cancelled(request, self._profile):
            self._cancellable[request.id] = task

    def _keep_from_being_cancelled(self, request_id: jsonrpc.Id) -> None:
        if self._cancellable.get(request_id) is asyncio.current_task():
            del self._cancellable[request_id]

    def _notified(self, notification: jsonrpc.Notification) -> None:
        """A call that changes something is not among the cancellable; a cancelled one is not answered (MCP)."""
        if notification.method == "notifications/cancelled" and notification.params:
            request_id: Any = notification.params.get("requestId")
            task = self._cancellable.pop(request_id, None) if type(request_id) in (int, str) else None
            if task:
                task.cancel()

    async def _answer(self, request: jsonrpc.Request, kernel: "Kernel", handshake: Handshake) -> None:
        try:
            # Gathered, so that a fault of ours comes back as a value and leaves the other calls alone.
            result = self._result(request, kernel, handshake)
            (outcome,) = await asyncio.gather(result, return_exceptions=True)
            # From here on: a line is written whole or not at all.
            self._keep_from_being_cancelled(request.id)
            if isinstance(outcome, jsonrpc.Refused):
                outcome = jsonrpc.error(outcome, request.id)
            elif isinstance(outcome, BaseException):
                logger.error("%s ended by a fault", request.method, exc_info=outcome)
                outcome = jsonrpc.error(jsonrpc.internal_error(), request.id)
            await self._output.line(outcome)
        finally:
            self._conversation.room.release()

    async def _result(self, request: jsonrpc.Request, kernel: "Kernel", handshake: Handshake) -> bytes:
        era = kernel.era(request, None, handshake.version)
        origin = Origin("local", "stdio", era.client or handshake.client)
        token = jsonrpc.progress_token(request.params)
        reporter = None if token is None else jsonrpc.Reporter(token, self._output.line_if_idle)
        progress = reporter.report if reporter else None
        result = await kernel.answer(request, era, profile=self._profile, origin=origin, progress=progress)
        if reporter:
            reporter.end()
        if request.method == "initialize":
            assert isinstance(result, dict)
            client = client_of((request.params or {}).get("clientInfo"))
            self._conversation.handshake = Handshake(result["protocolVersion"], client)
        return jsonrpc.result(request.id, result)
