"""Tools and a prompt that answer with questions (2026-07-28): the client asks again with the replies."""

from typing import Any

import mcp_types as types

from conformance.contents import said
from conformance.tool import Answer, Context, FixtureTool, text

Replies = dict[str, types.InputResponse]


def _form(message: str, field: str, kind: str = "string") -> types.ElicitRequest:
    schema: dict[str, Any] = {"type": "object", "properties": {field: {"type": kind}}, "required": [field]}
    return types.ElicitRequest(
        params=types.ElicitRequestFormParams(message=message, requested_schema=schema)
    )


def _sampling(prompt: str) -> types.CreateMessageRequest:
    message = types.SamplingMessage(role="user", content=types.TextContent(text=prompt))
    return types.CreateMessageRequest(
        params=types.CreateMessageRequestParams(messages=[message], max_tokens=100)
    )


_NAME = _form("What is your name?", "name")
_CONFIRM = _form("Please confirm", "ok", "boolean")


def _filled(replies: Replies, key: str, field: str) -> str | None:
    """What the form `key` was filled in with, if it was."""
    reply = replies.get(key)
    if not isinstance(reply, types.ElicitResult) or not reply.content:
        return None
    value = reply.content.get(field)
    return None if value is None else str(value)


def _ask(state: str | None = None, **requests: types.InputRequest) -> types.InputRequiredResult:
    return types.InputRequiredResult(input_requests=requests, request_state=state)


async def _elicitation(ctx: Context, params: types.CallToolRequestParams) -> Answer:
    name = _filled(params.input_responses or {}, "user_name", "name")
    return text(f"Hello, {name}!") if name else _ask(user_name=_NAME)


async def _sample(ctx: Context, params: types.CallToolRequestParams) -> Answer:
    reply = (params.input_responses or {}).get("capital_question")
    if isinstance(reply, types.CreateMessageResult):
        return text(f"The model said: {reply.content}")
    return _ask(capital_question=_sampling("What is the capital of France?"))


async def _roots(ctx: Context, params: types.CallToolRequestParams) -> Answer:
    reply = (params.input_responses or {}).get("client_roots")
    if isinstance(reply, types.ListRootsResult):
        return text(f"The client has {len(reply.roots)} roots")
    return _ask(client_roots=types.ListRootsRequest())


async def _state(ctx: Context, params: types.CallToolRequestParams) -> Answer:
    if params.request_state == "asked" and "confirm" in (params.input_responses or {}):
        return text("state-ok")
    return _ask("asked", confirm=_CONFIRM)


async def _several(ctx: Context, params: types.CallToolRequestParams) -> Answer:
    requests: dict[str, types.InputRequest] = {
        "user_name": _NAME,
        "greeting": _sampling("Write a greeting"),
        "client_roots": types.ListRootsRequest(),
    }
    if requests.keys() <= (params.input_responses or {}).keys():
        return text("All three were answered")
    return _ask("several", **requests)


async def _rounds(ctx: Context, params: types.CallToolRequestParams) -> Answer:
    """The state carries the first reply into the last round."""
    replies = params.input_responses or {}
    round_, _, name = (params.request_state or "").partition(":")
    colour = _filled(replies, "colour", "color")
    if round_ == "second" and colour:
        return text(f"{name} likes {colour}")
    first = _filled(replies, "user_name", "name")
    if round_ == "first" and first:
        return _ask(f"second:{first}", colour=_form("Which colour do you like?", "color"))
    return _ask("first:", user_name=_NAME)


async def _declared(ctx: Context, params: types.CallToolRequestParams) -> Answer:
    """Asks only for what the client said that it can do."""
    can = ctx.session.client_capabilities or types.ClientCapabilities()
    requests: dict[str, types.InputRequest] = {}
    if can.sampling is not None:
        requests["greeting"] = _sampling("Write a greeting")
    if can.elicitation is not None:
        requests["user_name"] = _NAME
    return _ask("declared", **requests)


QUESTION_TOOLS = (
    FixtureTool("test_input_required_result_elicitation", _elicitation),
    FixtureTool("test_streaming_elicitation", _elicitation),
    FixtureTool("test_input_required_result_sampling", _sample),
    FixtureTool("test_input_required_result_list_roots", _roots),
    FixtureTool("test_input_required_result_request_state", _state),
    FixtureTool("test_input_required_result_tampered_state", _state),
    FixtureTool("test_input_required_result_multiple_inputs", _several),
    FixtureTool("test_input_required_result_multi_round", _rounds),
    FixtureTool("test_input_required_result_capabilities", _declared),
)

QUESTION_PROMPT = types.Prompt(name="test_input_required_result_prompt", description="Asks for a context")


def question_messages(
    params: types.GetPromptRequestParams,
) -> types.GetPromptResult | types.InputRequiredResult:
    context = _filled(params.input_responses or {}, "user_context", "context")
    if context:
        return said(types.TextContent(text=f"Work in this context: {context}"))
    return _ask(user_context=_form("In which context?", "context"))
