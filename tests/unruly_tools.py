"""A plugin with tools that misbehave, for tests of the road: loaded by CONTEXTD_PLUGINS."""

import asyncio
from pathlib import Path

from contextd.domain.callers import Caller
from contextd.domain.errors import Conflict
from contextd.plugins import Extensions
from contextd.tools.declaration import Input, Output, tool


class Nothing:
    """A service that is none."""


def leave(mark: str, event: str) -> None:
    Path(f"{mark}.{event}").touch()


class Marked(Input):
    mark: str = ""


class Done(Output):
    text: str


@tool(toolset="system", timeout_s=0.2)
async def too_slow(nothing: Nothing, ask: Marked, caller: Caller) -> Done:
    """Never finish in time."""
    await asyncio.sleep(30)
    return Done(text="late")


@tool(toolset="system", timeout_s=60)
async def waits(nothing: Nothing, ask: Marked, caller: Caller) -> Done:
    """Wait until cancelled, and leave a mark that says so."""
    leave(ask.mark, "started")
    try:
        await asyncio.sleep(30)
    except asyncio.CancelledError:
        leave(ask.mark, "cancelled")
        raise
    return Done(text="done")


@tool(toolset="system")
async def crashes(nothing: Nothing, ask: Marked, caller: Caller) -> Done:
    """Fail with a secret in the exception."""
    raise RuntimeError(f"internal detail {ask.mark}")


@tool(toolset="system")
async def conflicts(nothing: Nothing, ask: Marked, caller: Caller) -> Done:
    """Fail as a tool may."""
    raise Conflict("two writers met")


@tool(toolset="system")
async def reports(nothing: Nothing, ask: Marked, caller: Caller) -> Done:
    """Report progress three times."""
    for step in range(1, 4):
        await caller.progress(step, 3, f"step {step}")
    return Done(text="reported")


@tool(toolset="system")
async def leaks(nothing: Nothing, ask: Marked, caller: Caller) -> Done:
    """Answer with a secret, after two of another kind were removed."""
    caller.tally.secrets["jwt"] += 2
    return Done(text="token ghp_" + "a1B2" * 9)


def extend(extensions: Extensions) -> None:
    extensions.tools += [too_slow, waits, crashes, conflicts, reports, leaks]
    extensions.services[Nothing] = Nothing()
