"""The only module that speaks MCP, and the only one that imports its SDK: one request in, one result out.

Two eras are served side by side. Since 2026-07-28 every request carries its version and its client in `_meta`; before,
`initialize` agreed on them once. Either way nothing is kept between requests here: a restart is invisible, and the
same kernel serves HTTP and stdio.

`tools/call` is answered with the protocol's own result shape; everything else runs through the SDK's kernel
(`serve_one`). Measured on the daemon's hottest path, the SDK's dispatch costs as much as all of HTTP; what it would
add there is validation of a result whose shape is four literal keys. The requests are still checked by the SDK's own
models, and the era by its own ladder.

A caller that says `"convmem/explain": true` in the `_meta` of a call is told in the result's `_meta` what each query on
the store took. No tool has an argument for it: it is for people who measure, and models need not read of it.
"""

import logging
from collections.abc import Awaitable, Mapping
from typing import Any, NamedTuple, TypeVar

import anyio
import mcp_types as types
import msgspec
from mcp.server import Server
from mcp.server.caching import CacheHint
from mcp.server.connection import Connection
from mcp.server.runner import serve_one
from mcp.shared.exceptions import MCPError, NoBackChannelError
from mcp.shared.inbound import ERROR_CODE_HTTP_STATUS, InboundLadderRejection, classify_inbound_request
from mcp.shared.transport_context import TransportContext
from mcp_types import methods
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic import ValidationError

from convmem import __version__, cursors, resources
from convmem.catalog import Catalog
from convmem.domain import Access, Origin, Tool
from convmem.errors import ConvmemError
from convmem.limits import URI_CODE_POINTS_MAX
from convmem.reach import Reach
from convmem.transport import calls
from convmem.transport.gate import CallAccess, Gate, Progress
from convmem.transport.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, Id, Refused, Request
from convmem.transport.origins import client_of

logger = logging.getLogger("convmem")

INSTRUCTIONS = (
    "convmem is the long-term memory of one person's agents: conversations of every agent and device are kept here and "
    "can be searched. Look here before you ask the user something that was said before, and write down what a later "
    "session will need."
)
# Without a version header the 2025 protocol says to assume this one.
VERSION_WITHOUT_HEADER = types.DEFAULT_NEGOTIATED_VERSION
VERSION_KEY, CLIENT_KEY = types.PROTOCOL_VERSION_META_KEY, types.CLIENT_INFO_META_KEY
SERVER_KEY = types.SERVER_INFO_META_KEY
EXPLAIN_KEY, STAGES_KEY = "convmem/explain", "convmem/stages"
# The list changes only with an upgrade, so a client may keep it for an hour; another token may see another profile.
LIST_HINT = CacheHint(ttl_ms=3_600_000, scope="private")
# Tables come and go, and their schemas change.
TABLES_HINT = CacheHint(ttl_ms=5_000, scope="private")
CACHE_HINTS: Mapping[Any, CacheHint] = {
    **dict.fromkeys(("tools/list", "server/discover", "resources/templates/list"), LIST_HINT),
    **dict.fromkeys(("resources/list", "resources/read"), TABLES_HINT),
}
ACCESS = "access"
NAME_CODE_POINTS_SHOWN = 64
RESOURCES_LIST = ("resources/list",)

Result = TypeVar("Result")


class Era(NamedTuple):
    """Which protocol one request speaks, and the client it names (2026 only)."""

    version: str
    modern: bool
    client: str | None


class Exchange:
    """What the SDK's kernel needs to know of a transport: nothing can be asked of the client, nothing is pushed."""

    transport = TransportContext(kind="convmem", can_send_request=False)
    can_send_request = False
    message_metadata = None

    def __init__(self, request_id: Id) -> None:
        self.request_id = request_id
        self.cancel_requested = anyio.Event()

    async def send_raw_request(self, method: str, params: Mapping[str, Any] | None, opts: Any = None) -> dict[str, Any]:
        raise NoBackChannelError(method)

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: Any = None) -> None:
        """Nothing of ours sends notifications through the SDK."""

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Likewise: progress goes through the caller's own channel."""


class Kernel:
    """Answers requests of both eras from a catalog, for any transport."""

    def __init__(self, catalog: Catalog, gate: Gate) -> None:
        self._catalog = catalog
        self.profiles = catalog.profiles
        self.read_only_tools = frozenset(name for name, tool in catalog.tools.items() if tool.reads_only)
        self._gate = gate
        self._servers = {profile: self._server(profile, tools) for profile, tools in catalog.profiles.items()}
        self._lists: dict[tuple[str, str], msgspec.Raw] = {}

    def era(self, request: Request, headers: Mapping[str, str] | None, agreed: str | None = None) -> Era:
        """Find out which protocol a request speaks; Refused if its parts disagree or nobody speaks it.

        `headers` are the protocol's own (`mcp-…`, lower case), None where the transport has none. `agreed` is the
        version that an `initialize` on the same connection agreed on.
        """
        header = headers.get("mcp-protocol-version") if headers is not None else None
        meta = request.params.get("_meta") if request.params else None
        named = type(meta) is dict and VERSION_KEY in meta and request.method != "initialize"
        if not named and (header is None or header in HANDSHAKE_PROTOCOL_VERSIONS):
            return Era(header or agreed or VERSION_WITHOUT_HEADER, False, None)
        body = {"method": request.method, "params": request.params}
        verdict = classify_inbound_request(body, headers=headers)
        if isinstance(verdict, InboundLadderRejection):
            raise _refused(request, True, verdict.code, verdict.message, verdict.data)
        return Era(verdict.protocol_version, True, client_of(verdict.client_info))

    async def answer(
        self,
        request: Request,
        era: Era,
        *,
        profile: str,
        origin: Origin,
        progress: Progress | None,
        reach: Reach = "admin",
    ) -> dict[str, Any] | msgspec.Raw:
        """Return the result of a request as a JSON value; Refused for what is no answer of a tool.

        Anything else that is raised is a fault of ours.
        """
        try:
            if request.method == "tools/call":
                return await self._call(request, era, profile, self._gate.access(origin, progress, reach))
            if request.method == "tools/list":
                return await self._list(request, era, profile)
            is_of_store = request.method.startswith("resources/")
            access = self._gate.access(origin, progress, reach) if is_of_store else None
            return await self._serve(request, era, profile, access)
        except MCPError as error:
            raise _refused(request, era.modern, error.error.code, error.error.message, error.error.data) from None
        except ValidationError:
            raise _refused(request, era.modern, INVALID_PARAMS, "Invalid request parameters") from None

    def may_be_cancelled(self, request: Request, profile: str) -> bool:
        """False for calls that change something: once begun they run to their end, whatever becomes of the caller."""
        if request.method != "tools/call" or not request.params:
            return True
        tool = self._tool(request.params.get("name"), profile)
        return tool is None or tool.reads_only

    async def _call(self, request: Request, era: Era, profile: str, access: CallAccess) -> dict[str, Any]:
        methods.validate_client_request("tools/call", era.version, request.params)
        params = request.params or {}
        tool = self._tool(params["name"], profile)
        if tool is None:
            raise MCPError(INVALID_PARAMS, f"Unknown tool: {ascii(params['name'][:NAME_CODE_POINTS_SHOWN])[1:-1]}")
        with calls.told(tool.name, access.origin, request.id) as call:
            reply = await self._catalog.call(tool, params.get("arguments") or {}, access)
            call.outcome = reply.facts["error"]["code"] if reply.refused else "ok"
        result: dict[str, Any] = {
            "content": [{"type": "text", "text": reply.text}],
            "structuredContent": reply.facts,
            "isError": reply.refused,
        }
        if era.modern:
            result["resultType"] = "complete"
            result["_meta"] = {SERVER_KEY: {"name": "convmem", "version": __version__}}
        if (params.get("_meta") or {}).get(EXPLAIN_KEY) is True:
            stages = [{"stage": stage, "ms": round(ms, 3)} for stage, ms in access.visits]
            result["_meta"] = result.get("_meta", {}) | {STAGES_KEY: stages}
        return result

    async def _list(self, request: Request, era: Era, profile: str) -> msgspec.Raw:
        methods.validate_client_request("tools/list", era.version, request.params)
        if request.params and request.params.get("cursor") is not None:
            raise MCPError(INVALID_PARAMS, "Invalid cursor: the list is one page")
        known = self._lists.get((profile, era.version))
        if known is None:
            known = msgspec.Raw(msgspec.json.encode(await self._serve(request, era, profile)))
            self._lists[profile, era.version] = known
        return known

    async def _serve(self, request: Request, era: Era, profile: str, access: Access | None = None) -> dict[str, Any]:
        connection = Connection.from_envelope(era.version, None, None)
        return await serve_one(
            self._servers[profile],
            Exchange(request.id),
            request.method,
            request.params,
            connection=connection,
            lifespan_state={ACCESS: access},
        )

    def _tool(self, name: Any, profile: str) -> Tool | None:
        return self._catalog.profiles[profile].get(name) if isinstance(name, str) else None

    def _server(self, profile: str, tools: Mapping[str, Tool]) -> Server[dict[str, Any]]:
        shown = [describe(tool, self._catalog.schemas[name]) for name, tool in tools.items()]
        listed = types.ListToolsResult.model_validate({"tools": shown})

        async def on_list_tools(*_: Any) -> types.ListToolsResult:
            return listed

        server: Server[dict[str, Any]] = Server(
            "convmem",
            version=__version__,
            instructions=INSTRUCTIONS,
            on_list_tools=on_list_tools,
            cache_hints=CACHE_HINTS,
            **resource_handlers(self._catalog, profile),
        )
        server.middleware.clear()  # telemetry that nobody reads
        return server


def resource_handlers(catalog: Catalog, profile: str) -> dict[str, Any]:
    """What answers requests for resources; nothing for a profile that shows none."""
    shown = catalog.resources(profile)
    if not shown:
        return {}

    async def on_list(context: Any, params: Any) -> types.ListResourcesResult:
        cursor = None if params is None else params.cursor
        start = 0 if cursor is None else _start(cursor)
        tables = await _asked(catalog.resource_tables(context.lifespan_context[ACCESS]))
        page, following = resources.page(list(resources.entries(shown, tables)), start)
        following_cursor = None if following is None else cursors.cursor(RESOURCES_LIST, following)
        listed = {"resources": [entry.facts() for entry in page], "nextCursor": following_cursor}
        return types.ListResourcesResult.model_validate(listed)

    async def on_list_templates(*_: Any) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult.model_validate({"resourceTemplates": resources.templates(shown)})

    async def on_read(context: Any, params: Any) -> types.ReadResourceResult:
        uri = str(params.uri)
        try:
            resource, table = resources.found(shown, uri)
            text = await _asked(resource.read(context.lifespan_context[ACCESS], table))
        except resources.UnknownResource:
            raise MCPError(INVALID_PARAMS, "Unknown resource", {"uri": uri[:URI_CODE_POINTS_MAX]}) from None
        contents = [{"uri": uri, "mimeType": resource.mime_type, "text": text}]
        return types.ReadResourceResult.model_validate({"contents": contents})

    return {
        "on_list_resources": on_list,
        "on_list_resource_templates": on_list_templates,
        "on_read_resource": on_read,
    }


def _start(cursor: str) -> int:
    try:
        return cursors.position(cursor, RESOURCES_LIST, int)
    except ConvmemError:
        raise MCPError(INVALID_PARAMS, "Invalid cursor") from None


async def _asked(answer: Awaitable[Result]) -> Result:
    """What the daemon answers; what it refuses as an error of the protocol, with its facts beside."""
    try:
        return await answer
    except ConvmemError as error:
        raise MCPError(INTERNAL_ERROR, f"{error.code}: {error.message}", error.facts()) from None


def describe(tool: Tool, schema: Mapping[str, Any]) -> dict[str, Any]:
    """A tool as `tools/list` shows it."""
    return {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": schema,
        "annotations": {
            "title": tool.title,
            "readOnlyHint": tool.reads_only,
            "destructiveHint": tool.destructive,
            "idempotentHint": tool.idempotent,
            "openWorldHint": False,
        },
    }


def _refused(request: Request, modern: bool, code: int, message: str, data: Any = None) -> Refused:
    status = ERROR_CODE_HTTP_STATUS.get(code, 200) if modern else 200
    return Refused(code, message, data, request_id=request.id, status=status)
