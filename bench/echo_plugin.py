"""The bare server's echo tool on contextd's road, as a plugin."""

from contextd.domain.callers import Caller
from contextd.plugins import Extensions
from contextd.tools.declaration import Input, Output, tool


class Nobody:
    """The service of tools that need none."""


class Said(Input):
    text: str = ""


class SaidBack(Output):
    result: str


@tool(toolset="system", read_only=True)
async def echo(service: Nobody, ask: Said, caller: Caller) -> SaidBack:
    """Say it back."""
    return SaidBack(result=ask.text)


def extend(extensions: Extensions) -> None:
    extensions.tools.append(echo)
    extensions.services[Nobody] = Nobody()
