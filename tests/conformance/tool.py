"""What a tool of the conformance suite is: a name, a schema, and what it answers."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext

Context = ServerRequestContext[Any, Any]
Answer = types.CallToolResult | types.InputRequiredResult
Run = Callable[[Context, types.CallToolRequestParams], Awaitable[Answer]]

NO_ARGUMENTS: Mapping[str, Any] = {"type": "object", "properties": {}}


@dataclass(frozen=True)
class FixtureTool:
    name: str
    run: Run
    schema: Mapping[str, Any] = field(default_factory=lambda: NO_ARGUMENTS)

    def listed(self) -> types.Tool:
        return types.Tool(
            name=self.name, description="Wanted by the conformance suite", input_schema=dict(self.schema)
        )


def text(words: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=words)])


def with_text_argument(name: str) -> dict[str, Any]:
    return {"type": "object", "properties": {name: {"type": "string"}}, "required": [name]}
