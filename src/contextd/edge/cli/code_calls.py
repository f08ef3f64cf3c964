"""Calls of the code tools from the command line."""

import shlex
from dataclasses import replace
from typing import Any

import click

from contextd.domain.callers import Caller, Progress
from contextd.domain.errors import Fault, NotIndexed
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
            await _as_today(house, arguments["path"])
            answer = await called(house, "search_code", arguments)
        except NotIndexed as fault:
            fault.remedy = f"run: contextd index {shlex.quote(arguments['path'])}"
            raise
        around = await indexed_at(house.code.store, arguments["path"], Caller(transport="cli"))
    return answer, around.below


async def _as_today(house: House, path: str) -> None:
    """After an upgrade an index is taken in again, once: nobody follows its files after this call.

    Where that fails, the index as it is answers by words.
    """
    code = house.code
    try:
        around = await indexed_at(code.store, path, Caller(transport="cli"))
    except Fault:
        # The search says so itself, once it has looked at what was asked.
        return
    older = [tree for tree in around.trees if await code.index.is_older(tree, around.project)]
    if older:
        click.echo("the index was made by another version: taking it in again, once", err=True)
    try:
        for tree in older:
            await code.index.follow(tree, around.project)
    except Fault as fault:
        click.echo(f"that failed, and words alone are searched: {fault.problem}", err=True)
