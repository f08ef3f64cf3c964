"""The pages of docs/ that come from the code; a test holds the files to them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from contextd.adapters.tokens import O200kCounter
from contextd.domain.errors import Fault, catalogue
from contextd.edge.error_map import codes
from contextd.edge.tool_page import page
from contextd.plugins import load_extensions
from contextd.settings import load_settings
from contextd.tools.declaration import AnyTool
from contextd.tools.registry import ALL, LEAN, Registry


def pages() -> dict[str, str]:
    """File name below docs/ to its text."""
    tools = load_extensions().tools
    return {
        "settings.md": settings_page(),
        "errors.md": errors_page(),
        "tools/README.md": tools_page(tools),
        **{f"tools/{tool.name}.md": page(tool) for tool in tools},
    }


_SETTINGS = """# Settings

Command line over environment over TOML file over defaults. `contextd config` shows each value
and where it came from. The TOML file is `config.toml` in the user's configuration folder for
contextd, or what `CONTEXTD_CONFIG` names.

| environment | in the TOML file | meaning |
|---|---|---|
"""

_ERRORS = """# Errors

Every error has the body `{category, code, message, details}`. The message carries the category
and what to do. Details name fields and never their values.

To a client that negotiated 2025-06-18 or older a tool's error is a JSON-RPC error; to a newer one
it is a result with `isError: true` and the same body as structured content. Unknown tools and
malformed messages are protocol errors for everyone.

| code | category | JSON-RPC | HTTP | gRPC | exit | what to do |
|---|---|---|---|---|---|---|
"""


_COSTS = """
## What listing them costs

Tokens of `tools/list` (o200k), by `CONTEXTD_TOOLSETS` or `--toolsets`; `contextd tools --tokens` counts
them on your machine, with your plugins. What is not listed answers all the same: see
[discovery](../discovery.md).

| toolsets | tools | tokens |
|---|---:|---:|
"""


@dataclass(frozen=True, slots=True)
class ListingCost:
    """What a client is told for this choice of toolsets."""

    toolset: str
    tools: int
    tokens: int


def listing_costs(tools: Sequence[AnyTool]) -> Iterator[ListingCost]:
    """Of everything, of the lean profile and of each toolset alone."""
    counter = O200kCounter()
    for toolset in dict.fromkeys((ALL, LEAN, *(tool.toolset for tool in tools))):
        registry = Registry(tuple(tools), (toolset,))
        yield ListingCost(toolset, len(registry.listed), counter.count(registry.listing()))


def settings_page() -> str:
    sources = load_settings({}).sources
    return _SETTINGS + "".join(f"| `{row.env}` | `{row.name}` | {row.meaning} |\n" for row in sources)


def errors_page() -> str:
    return _ERRORS + "".join(_error_row(fault) for fault in catalogue())


def _error_row(fault: type[Fault]) -> str:
    on = codes(fault)
    cells = (fault.id, fault.category, on.jsonrpc, on.http, on.grpc, on.exit, fault.hint)
    return f"| {' | '.join(str(cell) for cell in cells)} |\n"


def tools_page(tools: Sequence[AnyTool]) -> str:
    rows = [f"| [{tool.name}]({tool.name}.md) | {tool.toolset} | {tool.description} |" for tool in tools]
    listed = "\n".join(["# Tools", "", "| tool | toolset | |", "|---|---|---|", *rows, ""])
    costs = (f"| `{each.toolset}` | {each.tools} | {each.tokens:,} |\n" for each in listing_costs(tools))
    return listed + _COSTS + "".join(costs)
