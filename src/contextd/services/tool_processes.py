"""Calls of tools that are processes of their own."""

import json
import math
from collections.abc import Mapping
from typing import Any, Final

from contextd.domain.answers import as_json
from contextd.domain.callers import Caller
from contextd.domain.errors import ToolProcessFailed, ToolProcessMisspoke
from contextd.domain.ports import Scrubber
from contextd.domain.tool_processes import ToolHost

_TOLD: Final = 500
"""Characters of what a tool says about its failure."""
_DEEPEST: Final = 64


class ToolProcesses:
    def __init__(self, host: ToolHost, scrubber: Scrubber) -> None:
        self._host = host
        self._scrubber = scrubber

    async def call(
        self, plugin: str, tool: str, arguments: Mapping[str, Any], timeout_s: float, caller: Caller
    ) -> dict[str, Any]:
        """What it answered, an object. Raises what the host does."""
        given = as_json(dict(arguments)).encode()
        executed = await self._host.execute(plugin, tool, given, timeout_s)
        caller.tally.isolation = executed.level
        if executed.failure:
            raise ToolProcessFailed(f"{plugin}_{tool} could not do it: {self._words(executed.failure)}")
        try:
            answer = json.loads(executed.data)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict) or not _is_sound(answer):
            raise ToolProcessMisspoke(f"{plugin}_{tool} answered with something else than a JSON object")
        return answer

    def _words(self, failure: str) -> str:
        """Scrubbed whole, then cut, on one line and without what would steer a terminal."""
        plain = "".join(char if char.isprintable() else " " for char in self._scrubber.scrub(failure).text)
        return " ".join(plain.split())[:_TOLD]


def _is_sound(answer: object) -> bool:
    """Whether it can be passed on: not too deep, no number that is none, no half of a character."""
    waiting: list[tuple[object, int]] = [(answer, 0)]
    while waiting:
        value, depth = waiting.pop()
        if depth > _DEEPEST:
            return False
        if isinstance(value, float) and not math.isfinite(value):
            return False
        if isinstance(value, str) and any("\ud800" <= char <= "\udfff" for char in value):
            return False
        if isinstance(value, dict):
            waiting += [(each, depth + 1) for each in (*value, *value.values())]
        elif isinstance(value, list):
            waiting += [(each, depth + 1) for each in value]
    return True
