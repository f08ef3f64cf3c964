"""TOOL.md: a tool in a hundred tokens, from its declaration, for agents that did not see it listed."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from contextd import __version__
from contextd.domain.limits import DEFAULT_RATE, REFERENCES_TOKENS, TOOL_RATES
from contextd.services.front_matter import write
from contextd.tools.declaration import AnyTool

_MOST_FIELDS: Final = 10
_MOST_INNER: Final = 5


def tool_md(tool: AnyTool) -> str:
    rate = TOOL_RATES.get(tool.name, DEFAULT_RATE)
    head = write(
        {
            "name": tool.name,
            "version": __version__,
            "schema": schema_hash(tool),
            "limits": {
                "timeout_s": tool.timeout_s,
                "calls_per_second": rate.per_second,
                "burst": rate.burst,
                "tokens": tokens_of(tool),
            },
            "isolation": isolation_of(tool),
        }
    )
    return head + "".join(f"{line}\n" for line in _body(tool))


def schema_hash(tool: AnyTool) -> str:
    """Another one when what the tool takes or answers is another: who kept a copy can tell."""
    both = json.dumps({"input": tool.input_schema, "output": tool.output_schema}, sort_keys=True)
    return hashlib.sha256(both.encode()).hexdigest()[:12]


def isolation_of(tool: AnyTool) -> str:
    """Whether it runs what it is given in a sandbox, touches files of the project alone, or neither."""
    if "isolation" in tool.output.model_fields or tool.toolset == "plugins":
        return "sandbox"
    return "project" if tool.toolset == "safe" else "none"


def tokens_of(tool: AnyTool) -> str:
    """What an answer may cost, unless its caller gives a token_budget."""
    if callable(tool.budget):
        return "by what is asked"
    by_reference = f", {REFERENCES_TOKENS} by reference" if "detail" in tool.input.model_fields else ""
    return f"{tool.budget:,}{by_reference}"


def _body(tool: AnyTool) -> Iterator[str]:
    rate = TOOL_RATES.get(tool.name, DEFAULT_RATE)
    yield f"Use: {tool.description}"
    if tool.not_for:
        yield f"Not: {tool.not_for}"
    yield f"Returns: {_returns(tool)}"
    yield f"Limits: {tool.timeout_s:g} s; {rate.per_second:g} calls/s; tokens {tokens_of(tool)}"


def _returns(tool: AnyTool) -> str:
    """The fields; of a list of things, when it is the only one, also what each of them has."""
    names = list(tool.output.model_fields)
    if not names:
        return tool.output.__doc__ or "nothing"
    things = {name: inner for name in names if (inner := _inner(name, tool.output_schema))}
    if len(things) == 1:
        names = [
            f"{name} ({_listed(things[name], _MOST_INNER)})" if name in things else name for name in names
        ]
    return _listed(names, _MOST_FIELDS)


def _inner(name: str, schema: Mapping[str, Any]) -> list[str]:
    items = schema["properties"][name].get("items", {})
    definition = schema.get("$defs", {}).get(items.get("$ref", "").rsplit("/", 1)[-1], {})
    return list(definition.get("properties", {}))


def _listed(names: Sequence[str], most: int) -> str:
    return ", ".join([*names[:most], *(["…"] if len(names) > most else [])])
