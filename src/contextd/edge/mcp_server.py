"""The MCP face: one server object for every transport and protocol version."""

import logging
import secrets
from collections.abc import Mapping
from typing import Any, Final

import mcp_types as types
from mcp.server.caching import CacheHint
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError
from starlette.requests import Request

from contextd import __version__
from contextd.adapters.log_lines import set_request_id
from contextd.domain.callers import LOCAL, Caller
from contextd.domain.errors import Fault, Internal, NotFound, UnknownTool
from contextd.edge.call_pipeline import CallPipeline
from contextd.edge.error_map import INVALID_PARAMS, SPEAKS_TOOL_ERRORS_SINCE, as_jsonrpc, body
from contextd.edge.guard import principal_of
from contextd.edge.mcp_library import Library
from contextd.edge.mcp_skills import EXTENSION, SkillUri

logger = logging.getLogger(__name__)

Context = ServerRequestContext[Any, Any]

INSTRUCTIONS: Final = (
    "contextd keeps what a coding session must not lose. At the start, look for a checkpoint with"
    " checkpoint_search or checkpoint_list and resume it with checkpoint_restore. Save one with"
    " checkpoint_save when a step is done, before a risky change and at the end: what was decided,"
    " what was run, what is next. Give project_path as the absolute path of the project. To find code, run"
    " index_codebase once, then search_code by words or by name; symbol_lookup says who calls what."
    " An answer that was cut names a ref: ref_get reads on. Every tool takes token_budget, the most tokens"
    " of its answer, and branch_id: open a branch for a subtask that reads much, give its id to each call,"
    " then return a summary."
)
LEAN_INSTRUCTIONS: Final = (
    " Only a few of the tools are listed: find_tools finds the others, and call_tool calls them."
)
_AN_HOUR_MS: Final = 3_600_000
_STRUCTURED_SINCE: Final = "2025-06-18"
_SESSIONLESS_SINCE: Final = "2026-07-28"
_RESOURCE_NOT_FOUND: Final = -32002
"""Until 2025-11-25; later versions call it invalid params."""


class McpFace:
    """Turns MCP requests into calls on the pipeline, and their answers into MCP results."""

    def __init__(self, pipeline: CallPipeline, library: Library, transport: str) -> None:
        self._pipeline = pipeline
        self._library = library
        self._transport = transport
        self._process = f"{transport}-{secrets.token_hex(8)}"
        self._instructions = INSTRUCTIONS + (LEAN_INSTRUCTIONS if pipeline.registry.lean else "")

    def server(self, *, traced: bool) -> Server[dict[str, Any]]:
        server: Server[dict[str, Any]] = Server(
            "contextd",
            version=__version__,
            title="contextd",
            instructions=self._instructions,
            cache_hints={
                "tools/list": CacheHint(_AN_HOUR_MS, "public"),
                "prompts/list": CacheHint(_AN_HOUR_MS, "public"),
            },
            get_tool_input_schema=self._input_schema,
            on_list_tools=self._list_tools,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_resource_templates,
            on_read_resource=self._read_resource,
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._get_prompt,
            on_completion=self._complete,
        )
        # Registered by name because the answer is a plain dict: half the cost of a typed result.
        server.add_request_handler("tools/call", types.CallToolRequestParams, self._call_tool)
        server.add_request_handler("skills/list", types.PaginatedRequestParams, self._list_skills)
        server.add_request_handler("skills/get", SkillUri, self._get_skill)
        server.extensions[EXTENSION] = {}
        if not traced:
            # The SDK's own spans, which cost every message even when they go nowhere.
            server.middleware.clear()
        server.middleware.insert(0, self._outermost)
        return server

    async def _outermost(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Nothing but protocol errors leaves: on the older wire any other would be told word by word."""
        set_request_id(_request_id(ctx))
        try:
            return await call_next(ctx)
        except (MCPError, ValidationError):
            raise
        except Fault as fault:
            raise _protocol_error(fault) from None
        except Exception:
            logger.exception("%s failed", ctx.method)
            raise _protocol_error(Internal(_request_id(ctx))) from None

    # --- tools ------------------------------------------------------------------------

    async def _list_tools(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(
            tools=[
                types.Tool.model_validate(listing)
                for listing in self._pipeline.listing(self._caller(ctx), self._instructions)
            ]
        )

    def _input_schema(self, name: str) -> Mapping[str, Any] | None:
        tool = self._pipeline.registry.get(name)
        return tool.input_schema if tool else None

    async def _call_tool(self, ctx: Context, params: types.CallToolRequestParams) -> dict[str, Any]:
        try:
            answer = await self._pipeline.call(params.name, params.arguments or {}, self._caller(ctx))
        except UnknownTool as fault:
            # The name is the caller's, and the protocol wants it back.
            raise MCPError(INVALID_PARAMS, f"Unknown tool: {params.name[:128]}", body(fault)) from None
        except Fault as fault:
            if ctx.protocol_version < SPEAKS_TOOL_ERRORS_SINCE:
                raise _protocol_error(fault) from None
            return _tool_result(fault.message, body(fault), ctx.protocol_version, failed=True)
        structured = {**answer.data, **answer.envelope()}
        return _tool_result(answer.text, structured, ctx.protocol_version)

    def _caller(self, ctx: Context) -> Caller:
        request = ctx.request if isinstance(ctx.request, Request) else None
        client = ctx.session.client_params
        return Caller(
            principal=principal_of(request.scope) if request else LOCAL,
            transport=self._transport,
            session=request.headers.get("mcp-session-id") if request else self._process,
            client=client.client_info.name if client else None,
            request_id=_request_id(ctx),
            progress=ctx.session.report_progress,
        )

    # --- resources, prompts, completion ------------------------------------------------

    async def _list_resources(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        return await self._library.resources(self._caller(ctx), params.cursor if params else None)

    async def _list_resource_templates(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        return self._library.templates()

    async def _read_resource(
        self, ctx: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        try:
            return await self._library.read(str(params.uri), self._caller(ctx))
        except NotFound as fault:
            code = INVALID_PARAMS if ctx.protocol_version >= _SESSIONLESS_SINCE else _RESOURCE_NOT_FOUND
            raise MCPError(code, fault.message, {**body(fault), "uri": str(params.uri)[:512]}) from None

    async def _list_skills(self, ctx: Context, params: types.PaginatedRequestParams) -> dict[str, Any]:
        return _fresh(await self._library.skills(self._caller(ctx), params.cursor), ctx)

    async def _get_skill(self, ctx: Context, params: SkillUri) -> dict[str, Any]:
        try:
            return _fresh(await self._library.skill(params.uri, self._caller(ctx)), ctx)
        except NotFound as fault:
            raise MCPError(INVALID_PARAMS, fault.message, body(fault)) from None

    async def _list_prompts(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        return self._library.prompts.listed()

    async def _get_prompt(
        self, ctx: Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        return await self._library.prompts.get(params.name, params.arguments or {}, self._caller(ctx))

    async def _complete(self, ctx: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
        return await self._library.complete(params.ref, params.argument, self._caller(ctx))


def _tool_result(
    text: str, structured: dict[str, Any], version: str, *, failed: bool = False
) -> dict[str, Any]:
    """As text for every version, and as structured content for those that know it."""
    result: dict[str, Any] = {"content": [{"type": "text", "text": text}], "isError": failed}
    if version >= _STRUCTURED_SINCE:
        result["structuredContent"] = structured
    if version >= _SESSIONLESS_SINCE:
        result["resultType"] = "complete"
    return result


def _fresh(result: dict[str, Any], ctx: Context) -> dict[str, Any]:
    """With what the newer wire wants to know about caching: ask again, and share it with nobody."""
    caching = {"ttlMs": 0, "cacheScope": "private"} if ctx.protocol_version >= _SESSIONLESS_SINCE else {}
    return {**result, **caching}


def _protocol_error(fault: Fault) -> MCPError:
    error = as_jsonrpc(fault)
    return MCPError(error["code"], error["message"], error["data"])


def _request_id(ctx: Context) -> str:
    return str(ctx.request_id) if ctx.request_id is not None else ""
