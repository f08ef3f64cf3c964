"""Calls of the code tools from the command line."""

import shlex
from dataclasses import replace
from typing import Any

from contextd.domain.callers import Caller, Progress
from contextd.domain.errors import NotIndexed
from contextd.domain.limits import MAX_TOKENS
from contextd.edge.call_pipeline import pipeline_of
from contextd.edge.cli.terminal import ProgressLine
from contextd.services.indexed_trees import indexed_at
from contextd.wiring import House, open_house


async def called(
    house: House, tool: str, arguments: dict[str, Any], progress: Progress | None = None
) -> dict[str, Any]:
    """By the road that every call takes: with its checks, limits and records. Raises Fault.

    The answer is as long as answers get: it is for a person, whose window is a terminal.
    """
    caller = Caller(transport="cli")
    answer = await pipeline_of(house).call(
        tool,
        {**arguments, "token_budget": MAX_TOKENS},
        replace(caller, progress=progress) if progress else caller,
    )
    return {**answer.data, **answer.envelope()}


async def indexed(house: House, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Raises Fault."""
    async with open_house(house, follows=False):
        with ProgressLine() as line:
            return await called(house, tool, arguments, line.tell)


async def searched(house: House, arguments: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """The answer, and which folder of the index was searched. Raises Fault."""
    async with open_house(house, follows=False):
        try:
            answer = await called(house, "search_code", arguments)
        except NotIndexed as fault:
            fault.remedy = f"run: contextd index {shlex.quote(arguments['path'])}"
            raise
        around = await indexed_at(house.code.store, arguments["path"], Caller(transport="cli"))
    return answer, around.below
