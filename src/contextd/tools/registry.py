"""Every tool by its name, and which of them are told of."""

import json
from collections.abc import Iterator
from functools import cached_property
from typing import Any, Final, get_args

from contextd.domain.errors import Misconfigured, UnknownTool
from contextd.tools.declaration import AnyTool, Toolset
from contextd.tools.schemas import told_once

ALL: Final = "all"
LEAN: Final = "lean"
"""Instead of a toolset: every tool, and the few that the others are found by."""


class Registry:
    """Every tool by name. `listed` is what is advertised; the others answer all the same."""

    def __init__(self, tools: tuple[AnyTool, ...], toolsets: tuple[str, ...] = ("all",)) -> None:
        self._tools: dict[str, AnyTool] = {}
        for declared in tools:
            if declared.name in self._tools:
                raise ValueError(f"two tools are named {declared.name}")
            self._tools[declared.name] = declared
        _check(toolsets, tools)
        self.lean = LEAN in toolsets
        self.listed = tuple(each for each in tools if self._lists(each, toolsets))

    def __getitem__(self, name: str) -> AnyTool:
        try:
            return self._tools[name]
        except KeyError:
            raise UnknownTool from None

    def get(self, name: str) -> AnyTool | None:
        return self._tools.get(name)

    def __iter__(self) -> Iterator[AnyTool]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    @cached_property
    def listings(self) -> tuple[dict[str, Any], ...]:
        """Each listed tool in the profile's form, as `tools/list` tells it."""
        if not self.lean:
            return tuple(each.listing for each in self.listed)
        listings = [each.lean_listing for each in self.listed]
        schemas = told_once([listing["inputSchema"] for listing in listings])
        return tuple(
            {**listing, "inputSchema": schema} for listing, schema in zip(listings, schemas, strict=True)
        )

    def listing(self) -> str:
        """What a client reads to know the tools, as JSON: the price of being there."""
        return json.dumps(self.listings, separators=(",", ":"), ensure_ascii=False)

    def _lists(self, tool: AnyTool, toolsets: tuple[str, ...]) -> bool:
        if self.lean and (tool.lean or tool.lean_only):
            return True
        return not tool.lean_only and (ALL in toolsets or tool.toolset in toolsets)


def _check(toolsets: tuple[str, ...], tools: tuple[AnyTool, ...]) -> None:
    """A name that is no toolset would list nothing, and nobody would know why."""
    known = dict.fromkeys((ALL, *get_args(Toolset), *(each.toolset for each in tools), LEAN))
    unknown = [name for name in toolsets if name not in known]
    if unknown:
        raise Misconfigured(
            f"there is no toolset named {', '.join(unknown)}",
            f"set CONTEXTD_TOOLSETS, or --toolsets, to any of: {', '.join(known)}",
        )
