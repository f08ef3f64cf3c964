"""Tools that find and call the others, for clients that were told of a few only."""

import re
from collections.abc import Iterable
from typing import Annotated, Final

from pydantic import ConfigDict, Field

from contextd.domain.callers import Caller
from contextd.domain.errors import UnknownTool
from contextd.services.tool_finding import FindableTool, ToolFinding
from contextd.tools.declaration import AnyTool, Example, Input, Output, tool
from contextd.tools.fields import Id, Object, SearchText

MOST_FOUND: Final = 10
_NAMES: Final = re.compile(r"[a-z][a-z0-9_]*")


class FindTools(Input):
    query: SearchText = Field(description="What you want to do, in words")
    limit: Annotated[int, Field(ge=1, le=MOST_FOUND)] = 3


class ToolFound(Output):
    name: str
    description: str
    input_schema: Object


class ToolsFound(Output):
    tools: list[ToolFound]


@tool(
    toolset="system",
    not_for="finding code: search_code; ways of working: skill_search",
    lean=("query",),
    read_only=True,
    examples=(Example("what is not listed", {"query": "who calls this function"}),),
)
async def find_tools(finding: ToolFinding, ask: FindTools, caller: Caller) -> ToolsFound:
    """Find contextd's other tools by what you want to do: code, errors, skills, projects, statistics."""
    found = await finding.find(ask.query, ask.limit, caller.tally)
    return ToolsFound(
        tools=[
            ToolFound(name=each.name, description=each.description, input_schema=dict(each.input_schema))
            for each in found
        ]
    )


class CallTool(Input):
    name: Id = Field(description="From find_tools")
    arguments: Object = Field(default_factory=dict, description="By its input_schema")


class ToolCalled(Output):
    """Whatever the tool answers."""

    model_config = ConfigDict(extra="allow")


@tool(
    toolset="system",
    not_for="tools that are listed: call them by their names",
    lean=("name", "arguments"),
    lean_only=True,
    destructive=True,
)
async def call_tool(finding: ToolFinding, ask: CallTool, caller: Caller) -> ToolCalled:
    """Call a tool that find_tools found; it answers as if called by its name."""
    # The road calls the tool that is named instead, so that it is limited and counted as itself.
    raise UnknownTool


def findable(tools: Iterable[AnyTool]) -> list[FindableTool]:
    """Each tool but these two, as it is looked for.

    A tool that is not for something names the tool that is: what it says there is known of the other, too.
    """
    others = [each for each in tools if each.service is not ToolFinding]
    pointed = {each.name: list[str]() for each in others}
    for each in others:
        for part in each.not_for.split(";"):
            what, _, instead = part.partition(":")
            for name in _NAMES.findall(instead):
                pointed.get(name, []).append(what.strip())
    return [_findable(each, pointed[each.name]) for each in others]


def _findable(tool: AnyTool, pointed: list[str]) -> FindableTool:
    said = [f"{tool.name.replace('_', ' ')}: {tool.description}", tool.asked]
    titles = [example.title for example in tool.examples]
    fields = " ".join(tool.input.model_fields)
    text = ". ".join(part for part in (*said, *titles, *pointed, fields) if part)
    return FindableTool(tool.name, tool.description, tool.compact_schema, text, tool.destructive)


TOOLS: tuple[AnyTool, ...] = (find_tools, call_tool)
