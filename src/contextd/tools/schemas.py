"""JSON Schema as it is told: whole for documents, short for `tools/list`, shorter still where lean."""

import json
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, Literal

from pydantic import BaseModel

Schema = dict[str, Any]

_LEAN: Final = ("description", "type", "enum", "const", "items", "properties", "required", "anyOf")
"""What a model needs to fill in a call. Bounds and defaults are told by the fault of a call that misses."""


def schema_of(model: type[BaseModel], mode: Literal["validation", "serialization"]) -> Schema:
    """Without pydantic's titles, which only repeat the names."""
    return _everywhere(model.model_json_schema(mode=mode), _untitled)


def short_input(schema: Mapping[str, Any]) -> Schema:
    """What is left out may be null, too; to say so for each field costs more than it tells."""
    return _inlined(_everywhere(dict(schema), _without_null))


def short_output(schema: Mapping[str, Any]) -> Schema:
    """It says what an answer holds. That no other fields come, and what stands for those that were left
    out, binds the one who answers and not the one who reads."""
    return _or_a_fault(_inlined(_everywhere(dict(schema), _as_answered)))


def lean_input(schema: Mapping[str, Any], fields: Collection[str]) -> Schema:
    """These fields alone, by type and meaning."""
    inlined = _inlined(_everywhere(dict(schema), _without_null), most_uses=None)
    lean: Schema = _everywhere(inlined, _lean)
    lean["properties"] = {name: part for name, part in lean.get("properties", {}).items() if name in fields}
    return lean


def told_once(schemas: list[Schema]) -> list[Schema]:
    """With the meaning of a field where it first stands: the same name means the same everywhere."""
    told: set[tuple[str, str]] = set()
    shorter = []
    for schema in schemas:
        fields = {}
        for name, part in schema["properties"].items():
            meaning = (name, part.get("description", ""))
            known = meaning in told
            fields[name] = {key: value for key, value in part.items() if key != "description" or not known}
            told.add(meaning)
        shorter.append({**schema, "properties": fields})
    return shorter


def _everywhere(schema: Schema, change: Callable[[Schema], Schema]) -> Schema:
    """The schema changed, and each schema within it."""
    changed = change(schema)
    for key, value in changed.items():
        if key in ("properties", "$defs"):
            changed[key] = {name: _everywhere(part, change) for name, part in value.items()}
        elif key in ("items", "additionalProperties") and isinstance(value, dict):
            changed[key] = _everywhere(value, change)
        elif key in ("anyOf", "oneOf", "allOf"):
            changed[key] = [_everywhere(part, change) for part in value]
    return changed


def _untitled(schema: Schema) -> Schema:
    bare = {key: value for key, value in schema.items() if key != "title"}
    if bare.get("type") == "object" and "properties" in bare:
        # A model's docstring is for who reads the code.
        bare.pop("description", None)
    return bare


def _without_null(schema: Schema) -> Schema:
    rest = {key: value for key, value in schema.items() if key != "default" or value is not None}
    other = _other_than_null(rest)
    return rest if other is None else {key: rest[key] for key in rest if key != "anyOf"} | other


def _as_answered(schema: Schema) -> Schema:
    bare = {key: value for key, value in schema.items() if key != "default"}
    if bare.get("additionalProperties") is False:
        del bare["additionalProperties"]
    other = _other_than_null(bare)
    if other is None or not isinstance(other.get("type"), str):
        return bare
    nullable = {**other, "type": [other["type"], "null"]}
    if "enum" in other:
        nullable["enum"] = [*other["enum"], None]
    return {key: bare[key] for key in bare if key != "anyOf"} | nullable


def _other_than_null(schema: Schema) -> Schema | None:
    """The one form beside null, if there is one."""
    forms = schema.get("anyOf", [])
    others = [form for form in forms if form.get("type") != "null"]
    return others[0] if len(others) == 1 and len(forms) == 2 else None


def _lean(schema: Schema) -> Schema:
    return {key: schema[key] for key in _LEAN if key in schema}


def _inlined(schema: Schema, most_uses: int | None = 1) -> Schema:
    """Definitions put where they are used: those that are used often stay, unless `most_uses` is None."""
    definitions = schema.get("$defs", {})
    text = json.dumps(schema)
    uses = {name: text.count(f'"{_address(name)}"') for name in definitions}
    inline = {name for name in definitions if most_uses is None or uses[name] <= most_uses}

    def put(part: Any, around: frozenset[str]) -> Any:
        if isinstance(part, list):
            return [put(each, around) for each in part]
        if not isinstance(part, dict):
            return part
        name = str(part.get("$ref", "")).rsplit("/", 1)[-1]
        if name in around:
            # A model within itself goes on without end, and is told once.
            return {"type": "object"}
        beside = {
            key: put(value, around) for key, value in part.items() if key != "$ref" or name not in inline
        }
        return {**put(definitions[name], around | {name}), **beside} if name in inline else beside

    whole: Schema = put({key: schema[key] for key in schema if key != "$defs"}, frozenset())
    kept = {name: put(definitions[name], frozenset()) for name in definitions if name not in inline}
    return {"$defs": kept, **whole} if kept else whole


def _address(name: str) -> str:
    return f"#/$defs/{name}"


def _or_a_fault(schema: Schema) -> Schema:
    """Clients of the official TypeScript SDK hold failed calls, too, against the schema. If it knew answers
    only, they would complain about the schema and never show the fault."""
    rest = {name: part for name, part in schema.items() if name != "required"}
    answer, fault = schema.get("required", []), ["category", "code", "message"]
    return {**rest, "anyOf": [{"required": answer}, {"required": fault}]}
