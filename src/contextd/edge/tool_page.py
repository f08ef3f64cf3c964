"""A tool's page in the docs, generated from its declaration."""

import json
from collections.abc import Mapping
from typing import Any

from contextd.domain.limits import DEFAULT_RATE, TOOL_RATES
from contextd.edge.tool_md import tokens_of
from contextd.tools.declaration import AnyTool


def page(tool: AnyTool) -> str:
    rate = TOOL_RATES.get(tool.name, DEFAULT_RATE)
    parts = [
        f"# {tool.name}",
        tool.description,
        f"Timeout {tool.timeout_s:g} s · {rate.per_second:g} calls a second, burst {rate.burst} ·"
        f" tokens of an answer {tokens_of(tool)} · toolset `{tool.toolset}` · {_nature(tool)}",
        "## Input",
        _table(tool.input_schema),
        "## Output",
        _table(tool.output_schema),
    ]
    for example in tool.examples:
        parts += [
            f"## Example: {example.title}",
            f"```json\n{json.dumps(dict(example.arguments), indent=2, ensure_ascii=False)}\n```",
        ]
    return "\n\n".join(parts) + "\n"


def _nature(tool: AnyTool) -> str:
    if tool.read_only:
        return "reads only"
    return "**destructive**" if tool.destructive else "writes"


def _table(schema: Mapping[str, Any]) -> str:
    properties: Mapping[str, Any] = schema.get("properties", {})
    if not properties:
        return "Nothing."
    required = set(schema.get("required", ()))
    lines = ["| field | type | |", "|---|---|---|"]
    for name, field in properties.items():
        kind = _type(field, schema) + (", required" if name in required and "default" not in field else "")
        lines.append(f"| `{name}` | {kind} | {_meaning(field)} |")
    return "\n".join(lines)


def _type(field: Mapping[str, Any], root: Mapping[str, Any]) -> str:
    if "$ref" in field:
        name = field["$ref"].rsplit("/", 1)[1]
        inner = root["$defs"][name].get("properties", {})
        return f"object ({', '.join(f'`{key}`' for key in inner)})"
    if "anyOf" in field:
        return " or ".join(_type(part, root) for part in field["anyOf"])
    if "enum" in field:
        return " / ".join(f"`{value}`" for value in field["enum"])
    kind = str(field.get("type", "any"))
    if kind == "array":
        return f"list of {_type(field.get('items', {}), root)}"
    return kind + _bounds(field)


def _bounds(field: Mapping[str, Any]) -> str:
    low = field.get("minLength", field.get("minimum"))
    high = field.get("maxLength", field.get("maximum", field.get("maxItems", field.get("maxProperties"))))
    if high is None:
        return ""
    return f" ({low} to {high})" if low is not None else f" (at most {high})"


def _meaning(field: Mapping[str, Any]) -> str:
    text = str(field.get("description", ""))
    default = field.get("default")
    if default is not None and default not in ("", [], {}):
        text = f"{text}; " if text else ""
        return f"{text}default `{json.dumps(default)}`".replace('"', "")
    return text
