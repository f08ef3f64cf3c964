"""`contextd serve` for the conformance suite: the real daemon, with the suite's fixtures beside its tools.

The suite asks for tools, prompts and resources by name. They are put around the product's own
handlers, which still answer everything else. Run as `python -m conformance.fixture_server serve`
with the tests' folder on the path.
"""

import sys
import warnings
from typing import Any
from unittest.mock import patch

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.exceptions import MCPDeprecationWarning
from starlette.types import Receive, Scope, Send

from conformance.contents import CONTENT_TOOLS, PROMPTS, RESOURCES, TEMPLATES, contents_of, messages_of
from conformance.questions import QUESTION_PROMPT, QUESTION_TOOLS, question_messages
from conformance.streams import stream_tools
from conformance.tool import Answer, Context, FixtureTool, text
from contextd.edge import daemon, mcp_http
from contextd.edge.call_pipeline import CallPipeline
from contextd.edge.cli import run
from contextd.edge.http_app import HttpApp
from contextd.wiring import House

_REGION = {"type": "string", "x-mcp-header": "Region"}

_DIALECT: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {"$anchor": "addressDef", "type": "object", "properties": {"city": {"type": "string"}}}
    },
    "properties": {
        "address": {"$ref": "#/$defs/address"},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"required": ["address"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


async def _echo(ctx: Context, params: types.CallToolRequestParams) -> Answer:
    return text(str(params.arguments or {}))


_SCHEMA_TOOLS = (
    FixtureTool("json_schema_2020_12_tool", _echo, _DIALECT),
    FixtureTool("test_x_mcp_header", _echo, {"type": "object", "properties": {"region": _REGION}}),
)


class StreamingSessions(mcp_http.SessionManager):
    """Answers every call by SSE: what a fixture tells its client on the way needs a stream."""

    async def handle_request(self, scope: Scope, receive: Receive, send: Send) -> None:
        mcp_http._answer_as_json.set(False)
        await super().handle_request(scope, receive, send)


class FixtureApp(HttpApp):
    def __init__(self, house: House, pipeline: CallPipeline) -> None:
        super().__init__(house, pipeline)
        self.sessions = StreamingSessions(self.server, house.settings.session_idle_s, house.telemetry)
        self._mcp = mcp_http.McpEndpoint(self.sessions)
        bus = InMemorySubscriptionBus()
        tools = (*CONTENT_TOOLS, *stream_tools(bus), *QUESTION_TOOLS, *_SCHEMA_TOOLS)
        _add_tools(self.server, {tool.name: tool for tool in tools})
        _add_resources(self.server)
        _add_prompts(self.server)
        self.server.add_request_handler(
            "subscriptions/listen", types.SubscriptionsListenRequestParams, ListenHandler(bus)
        )
        self.server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, _done)
        self.server.middleware.append(
            RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience=self.server.name)
        )


async def _done(ctx: Context, params: Any) -> types.EmptyResult:
    return types.EmptyResult()


def _product(server: Server[Any], method: str) -> Any:
    entry = server.get_request_handler(method)
    assert entry is not None, f"the product serves {method}"
    return entry.handler


def _add_tools(server: Server[Any], tools: dict[str, FixtureTool]) -> None:
    list_tools, call_tool = _product(server, "tools/list"), _product(server, "tools/call")
    schema_of = server.get_tool_input_schema
    assert schema_of is not None

    async def listed(ctx: Context, params: types.PaginatedRequestParams) -> types.ListToolsResult:
        found: types.ListToolsResult = await list_tools(ctx, params)
        found.tools += [tool.listed() for tool in tools.values()]
        return found

    async def called(ctx: Context, params: types.CallToolRequestParams) -> Any:
        tool = tools.get(params.name)
        return await (tool.run(ctx, params) if tool else call_tool(ctx, params))

    server.add_request_handler("tools/list", types.PaginatedRequestParams, listed)
    server.add_request_handler("tools/call", types.CallToolRequestParams, called)
    server.get_tool_input_schema = lambda name: tools[name].schema if name in tools else schema_of(name)


def _add_resources(server: Server[Any]) -> None:
    list_resources, read = _product(server, "resources/list"), _product(server, "resources/read")
    list_templates = _product(server, "resources/templates/list")

    async def listed(ctx: Context, params: types.PaginatedRequestParams) -> types.ListResourcesResult:
        found: types.ListResourcesResult = await list_resources(ctx, params)
        found.resources += RESOURCES
        return found

    async def templates(
        ctx: Context, params: types.PaginatedRequestParams
    ) -> types.ListResourceTemplatesResult:
        found: types.ListResourceTemplatesResult = await list_templates(ctx, params)
        found.resource_templates += TEMPLATES
        return found

    async def contents(ctx: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        ours = contents_of(str(params.uri))
        result: types.ReadResourceResult
        result = types.ReadResourceResult(contents=[ours]) if ours else await read(ctx, params)
        return result

    server.add_request_handler("resources/list", types.PaginatedRequestParams, listed)
    server.add_request_handler("resources/templates/list", types.PaginatedRequestParams, templates)
    server.add_request_handler("resources/read", types.ReadResourceRequestParams, contents)
    server.add_request_handler("resources/subscribe", types.SubscribeRequestParams, _done)
    server.add_request_handler("resources/unsubscribe", types.UnsubscribeRequestParams, _done)


def _add_prompts(server: Server[Any]) -> None:
    list_prompts, get = _product(server, "prompts/list"), _product(server, "prompts/get")

    async def listed(ctx: Context, params: types.PaginatedRequestParams) -> types.ListPromptsResult:
        found: types.ListPromptsResult = await list_prompts(ctx, params)
        found.prompts += [*PROMPTS, QUESTION_PROMPT]
        return found

    async def prompt(ctx: Context, params: types.GetPromptRequestParams) -> Any:
        if params.name == QUESTION_PROMPT.name:
            return question_messages(params)
        return messages_of(params.name, params.arguments or {}) or await get(ctx, params)

    server.add_request_handler("prompts/list", types.PaginatedRequestParams, listed)
    server.add_request_handler("prompts/get", types.GetPromptRequestParams, prompt)


if __name__ == "__main__":
    # The older versions' sampling and logging are still to be proven, deprecated as they are.
    warnings.filterwarnings("ignore", category=MCPDeprecationWarning)
    with patch.object(daemon, "HttpApp", FixtureApp):
        sys.exit(run(sys.argv[1:]))
