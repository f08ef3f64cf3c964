"""Tools that talk to the client while they run: log, progress, sampling, elicitation, events."""

from typing import Any

import anyio
import mcp_types as types
from mcp.server.subscriptions import PromptsListChanged, ServerEvent, SubscriptionBus, ToolsListChanged
from mcp.shared.exceptions import MCPError

from conformance.tool import Answer, Context, FixtureTool, Run, text, with_text_argument

_PAUSE_S = 0.02
"""Between two notifications, so that they do not arrive as one chunk."""


async def _log(ctx: Context, words: str) -> None:
    await ctx.session.send_log_message("info", words, related_request_id=ctx.request_id)


async def _logs(ctx: Context, params: types.CallToolRequestParams) -> Answer:
    for words in ("started", "working", "done"):
        await _log(ctx, words)
        await anyio.sleep(_PAUSE_S)
    return text("Logged three times")


async def _progresses(ctx: Context, params: types.CallToolRequestParams) -> Answer:
    for done in (0, 50, 100):
        await ctx.session.report_progress(done, 100, f"{done} of 100")
        await anyio.sleep(_PAUSE_S)
    return text("Reported three times")


async def _samples(ctx: Context, params: types.CallToolRequestParams) -> Answer:
    asked = types.TextContent(text=str((params.arguments or {})["prompt"]))
    answered = await ctx.session.create_message(
        [types.SamplingMessage(role="user", content=asked)],
        max_tokens=100,
        related_request_id=ctx.request_id,
    )
    said = answered.content.text if isinstance(answered.content, types.TextContent) else "no text"
    return text(f"LLM response: {said}")


def _elicits(properties: dict[str, Any]) -> Run:
    async def run(ctx: Context, params: types.CallToolRequestParams) -> Answer:
        message = str((params.arguments or {}).get("message", "Please fill in the form"))
        schema = {"type": "object", "properties": properties, "required": list(properties)}
        answered = await ctx.session.elicit_form(message, schema, ctx.request_id)
        return text(f"action={answered.action}, content={answered.content}")

    return run


async def _reconnects(ctx: Context, params: types.CallToolRequestParams) -> Answer:
    """Closes the stream of its own answer: the client has to come back for the rest."""
    await _log(ctx, "before the stream closes")
    if ctx.close_sse_stream is not None:
        await ctx.close_sse_stream()
    await anyio.sleep(0.2)
    await _log(ctx, "after it closed")
    return text("Sent after the reconnection")


async def _needs_sampling(ctx: Context, params: types.CallToolRequestParams) -> Answer:
    declared = ctx.session.client_capabilities
    if declared is None or declared.sampling is None:
        raise MCPError(
            types.MISSING_REQUIRED_CLIENT_CAPABILITY,
            "the client declared no sampling",
            {"requiredCapabilities": {"sampling": {}}},
        )
    return text("The client can sample")


def stream_tools(bus: SubscriptionBus) -> tuple[FixtureTool, ...]:
    def publishes(event: ServerEvent) -> Run:
        async def run(ctx: Context, params: types.CallToolRequestParams) -> Answer:
            await bus.publish(event)
            return text("Told the subscribers")

        return run

    return (
        FixtureTool("test_tool_with_logging", _logs),
        FixtureTool("test_logging_tool", _logs),
        FixtureTool("test_tool_with_progress", _progresses),
        FixtureTool("test_sampling", _samples, with_text_argument("prompt")),
        FixtureTool(
            "test_elicitation",
            _elicits({"username": {"type": "string"}, "email": {"type": "string"}}),
            with_text_argument("message"),
        ),
        FixtureTool("test_elicitation_sep1034_defaults", _elicits(_DEFAULTS)),
        FixtureTool("test_elicitation_sep1330_enums", _elicits(_CHOICES)),
        FixtureTool("test_reconnection", _reconnects),
        FixtureTool("test_missing_capability", _needs_sampling),
        FixtureTool("test_trigger_tool_change", publishes(ToolsListChanged())),
        FixtureTool("test_trigger_prompt_change", publishes(PromptsListChanged())),
    )


_DEFAULTS: dict[str, Any] = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    "verified": {"type": "boolean", "default": True},
}


def _titled(*values: str) -> list[dict[str, str]]:
    return [{"const": value, "title": value.capitalize()} for value in values]


_CHOICES: dict[str, Any] = {
    "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
    "titledSingle": {"type": "string", "oneOf": _titled("value1", "value2", "value3")},
    "legacyEnum": {
        "type": "string",
        "enum": ["opt1", "opt2", "opt3"],
        "enumNames": ["One", "Two", "Three"],
    },
    "untitledMulti": {
        "type": "array",
        "items": {"type": "string", "enum": ["option1", "option2", "option3"]},
    },
    "titledMulti": {"type": "array", "items": {"anyOf": _titled("value1", "value2", "value3")}},
}
