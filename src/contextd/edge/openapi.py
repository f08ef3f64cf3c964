"""The automation API described: OpenAPI 3.1, and a page that a person can read."""

from collections.abc import Iterable
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from contextd.domain.errors import catalogue
from contextd.edge.error_map import codes
from contextd.tools.declaration import AnyTool, Envelope

_ERROR = {
    "type": "object",
    "required": ["category", "code", "message", "details"],
    "properties": {
        "category": {"type": "string"},
        "code": {"type": "string"},
        "message": {"type": "string"},
        "details": {"type": "object"},
    },
}


def openapi(tools: Iterable[AnyTool], version: str) -> dict[str, Any]:
    return {
        "openapi": "3.1.0",
        "info": {"title": "contextd", "version": version},
        "paths": {f"/api/v1/tools/{tool.name}": {"post": _operation(tool)} for tool in tools},
        "components": {
            "schemas": {"Error": _ERROR},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}, {}],
    }


def _operation(tool: AnyTool) -> dict[str, Any]:
    failed = {
        "description": "see the error's message",
        "content": _content({"$ref": "#/components/schemas/Error"}),
    }
    return {
        "operationId": tool.name,
        "summary": tool.description,
        "tags": [tool.toolset],
        "requestBody": {"required": True, "content": _content(_inlined(dict(tool.input_schema)))},
        "responses": {
            "200": {"description": "the answer", "content": _content(_enveloped(tool))},
            **dict.fromkeys(("400", "401", "403", "404", "429", "500", "503", "504"), failed),
        },
    }


def _enveloped(tool: AnyTool) -> dict[str, Any]:
    data = _inlined(tool.output.model_json_schema(mode="serialization"))
    envelope = Envelope.model_json_schema()["properties"]
    return {"type": "object", "required": ["data", "tokens_used"], "properties": {"data": data, **envelope}}


def _content(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _inlined(schema: dict[str, Any]) -> dict[str, Any]:
    """`$defs` inside a response would be looked for at the document's root: put them in place."""
    definitions = schema.pop("$defs", {})

    def resolve(value: Any) -> Any:
        if isinstance(value, dict):
            if "$ref" in value:
                return resolve(definitions[value["$ref"].rsplit("/", 1)[1]])
            return {key: resolve(part) for key, part in value.items()}
        return [resolve(part) for part in value] if isinstance(value, list) else value

    inlined: dict[str, Any] = resolve(schema)
    return inlined


def reference_page(tools: Iterable[AnyTool], version: str) -> str:
    rows = "".join(
        f"<section><h2>{escape(tool.name)} <small>{escape(tool.toolset)}</small></h2>"
        f"<p>{escape(tool.description)}</p><p class=fields>{_fields(tool)}</p></section>"
        for tool in tools
    )
    faults = "".join(
        f"<tr><td>{fault.id}</td><td>{fault.category}</td><td>{codes(fault).http}</td>"
        f"<td>{escape(fault.hint)}</td></tr>"
        for fault in catalogue()
    )
    page = Template((files("contextd.edge") / "pages" / "reference.html").read_text(encoding="utf-8"))
    return page.substitute(version=escape(version), tools=rows, faults=faults)


def _fields(tool: AnyTool) -> str:
    required = set(tool.input_schema.get("required", ()))
    names = tool.input_schema.get("properties", {})
    return (
        " ".join(
            f"<code{' class=required' if name in required else ''}>{escape(name)}</code>" for name in names
        )
        or "no fields"
    )
