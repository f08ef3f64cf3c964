"""A plugin with a tool of the safe set, for tests of the audit: loaded by CONTEXTD_PLUGINS."""

import asyncio

from contextd.domain.callers import Caller
from contextd.plugins import Extensions
from contextd.tools.declaration import Input, Output, tool


class Runs:
    """Counts what it was made to run."""

    def __init__(self) -> None:
        self.count = 0
        self.held = asyncio.Event()


class Command(Input):
    command: str


class Ran(Output):
    text: str


@tool(toolset="safe")
async def runs(service: Runs, ask: Command, caller: Caller) -> Ran:
    """Pretend to run a command in a sandbox."""
    service.count += 1
    caller.tally.isolation = "bubblewrap"
    caller.tally.exit_code = 3
    caller.tally.secrets["github-token"] += 2
    return Ran(text=f"ran {ask.command}")


@tool(toolset="system")
async def holds(service: Runs, ask: Command, caller: Caller) -> Ran:
    """Never answer."""
    service.held.set()
    await asyncio.Event().wait()
    return Ran(text="never")


def extend(extensions: Extensions) -> None:
    extensions.tools += [runs, holds]
    extensions.services[Runs] = Runs()
