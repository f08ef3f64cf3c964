"""JSON Schema that came as data, into the types that every other tool has.

So arguments are checked, explained and told as those of any tool. Only what a tool needs is understood, and
what is not is refused when the plugin is installed: a schema that is half obeyed would be a trap. Patterns
are matched in linear time, and sizes are bounded: the schema is a stranger's.
"""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue, create_model
from pydantic.errors import PydanticUserError
from pydantic_core import SchemaError

from contextd.domain.errors import NotInstallable
from contextd.tools.declaration import Envelope, Input, Output

Schema = Mapping[str, Any]
M = TypeVar("M", bound=BaseModel)

_DEEPEST: Final = 8
_MOST_FIELDS: Final = 64
_MOST_CHOICES: Final = 128
_LONGEST_TEXT: Final = 1_000
_LONGEST_PATTERN: Final = 200
_NAME: Final = re.compile(r"(?!model_)[A-Za-z][A-Za-z0-9_]{0,63}")
_SAID: Final = ("type", "title", "description", "default", "examples", "$schema", "$comment")
_BOUNDS: Final[Mapping[str, Mapping[str, str]]] = {
    "string": {"minLength": "min_length", "maxLength": "max_length", "pattern": "pattern"},
    "integer": {"minimum": "ge", "maximum": "le", "exclusiveMinimum": "gt", "exclusiveMaximum": "lt"},
    "number": {"minimum": "ge", "maximum": "le", "exclusiveMinimum": "gt", "exclusiveMaximum": "lt"},
    "array": {"minItems": "min_length", "maxItems": "max_length"},
    "boolean": {},
    "null": {},
    "object": {"maxProperties": "max_length"},
}
_SIMPLE: Final[Mapping[str, Any]] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "null": None,
}


def input_model(schema: Schema, where: str) -> type[Input]:
    """Raises NotInstallable."""
    return _object(schema, where, 0, Input)


def output_model(schema: Schema | None, where: str) -> type[Output]:
    """Without a schema, any object. Raises NotInstallable."""
    model = _object(schema or {"type": "object"}, where, 0, _Answer)
    taken = set(model.model_fields) & set(Envelope.model_fields)
    if taken:
        raise _wrong(
            where, "has fields that every answer has already", f"rename {', '.join(sorted(taken))}"
        )
    return model


class _Answer(Output):
    """What a tool process answers: the fields that it promised, and further ones."""

    model_config = ConfigDict(strict=True, extra="allow")

    sparse = True


class _Part(BaseModel):
    """An object within one of these."""

    model_config = ConfigDict(strict=True, extra="allow", frozen=True)


def _object(schema: Schema, where: str, depth: int, base: type[M]) -> type[M]:
    """A model of its named fields; further ones are taken unless the schema, or the base, says no."""
    if schema.get("type") != "object":
        raise _wrong(where, "is not of type object", 'give "type": "object"')
    _only(schema, where, (*_SAID, "properties", "required", "additionalProperties"))
    properties, required = schema.get("properties", {}), schema.get("required", [])
    if not isinstance(properties, Mapping) or len(properties) > _MOST_FIELDS:
        raise _wrong(where, "has no fit properties", f"give at most {_MOST_FIELDS}")
    if not isinstance(required, list) or any(name not in list(properties) for name in required):
        raise _wrong(where, "requires fields that it does not have", "name them in properties")
    fields: dict[str, Any] = {}
    for name, part in properties.items():
        if not _NAME.fullmatch(name) or hasattr(base, name):
            raise _wrong(
                where, "has a field of no fit name", "use letters, digits and _, not a word of pydantic's"
            )
        within = f"{where}.{name}"
        about = (
            Field(description=_description(part, within)) if name in required else _left_out(part, within)
        )
        fields[name] = (_type(part, within, depth + 1), about)
    further = schema.get("additionalProperties")
    if further not in (None, True, False):
        raise _wrong(where, "has a schema for further fields", "give true or false beside named fields")
    try:
        said = {} if further is None else {"extra": "allow" if further else "forbid"}
        model = create_model(base.__name__.strip("_"), __base__=base, __cls_kwargs__=said, **fields)
        model.model_json_schema()
    except (SchemaError, PydanticUserError, ValueError, TypeError, re.error):
        raise _wrong(where, "cannot be used", "compare each keyword with JSON Schema 2020-12") from None
    return model


def _left_out(part: Any, where: str) -> Any:
    """None only stands in for what was not given, and is never passed on."""
    return Field(default_factory=lambda: None, description=_description(part, where))


def _description(part: Any, where: str) -> str | None:
    text = part.get("description") if isinstance(part, Mapping) else None
    if text is None:
        return None
    if not isinstance(text, str) or len(text) > _LONGEST_TEXT or not text.isprintable():
        raise _wrong(where, "has no fit description", f"one line of at most {_LONGEST_TEXT} characters")
    return text


def _type(schema: Any, where: str, depth: int) -> Any:
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        raise _wrong(where, "is no schema, or too deep", f"use objects, at most {_DEEPEST} deep")
    if "enum" in schema or "const" in schema:
        return _choice(schema, where)
    kind = schema.get("type")
    if isinstance(kind, list) and len(kind) == 2 and "null" in kind:
        (other,) = [each for each in kind if each != "null"] or ["null"]
        inner = _type({**schema, "type": other}, where, depth)
        return None if inner is None else inner | None
    if kind is None and not set(schema) - set(_SAID):
        return JsonValue
    if not isinstance(kind, str) or kind not in _BOUNDS:
        raise _wrong(where, "has no fit type", f"give one of: {', '.join(_BOUNDS)}")
    if kind == "object" and "properties" in schema:
        return _object(schema, where, depth, _Part)
    return _bounded(_container(kind, schema, where, depth), kind, schema, where)


def _container(kind: str, schema: Schema, where: str, depth: int) -> Any:
    if kind == "array":
        _only(schema, where, (*_SAID, *_BOUNDS[kind], "items"))
        inner = _type(schema["items"], f"{where}[]", depth + 1) if "items" in schema else JsonValue
        return list[inner]  # type: ignore[valid-type]  # the type is data here
    if kind == "object":
        _only(schema, where, (*_SAID, *_BOUNDS[kind], "additionalProperties"))
        further = schema.get("additionalProperties", True)
        value = _type(further, f"{where}.*", depth + 1) if isinstance(further, Mapping) else JsonValue
        return dict[str, value]  # type: ignore[valid-type]  # the type is data here
    _only(schema, where, (*_SAID, *_BOUNDS[kind], "format"))
    return _SIMPLE[kind]


def _bounded(kind_type: Any, kind: str, schema: Schema, where: str) -> Any:
    bounds = {ours: schema[theirs] for theirs, ours in _BOUNDS[kind].items() if theirs in schema}
    pattern = bounds.get("pattern", "")
    if not isinstance(pattern, str) or len(pattern) > _LONGEST_PATTERN:
        raise _wrong(where, "has no fit pattern", f"at most {_LONGEST_PATTERN} characters")
    numbers = [value for name, value in bounds.items() if name != "pattern"]
    if any(isinstance(value, bool) or not isinstance(value, int | float) for value in numbers):
        raise _wrong(where, "has a bound that is no number", "give numbers")
    return Annotated[kind_type, Field(**bounds)] if bounds else kind_type


def _choice(schema: Schema, where: str) -> Any:
    _only(schema, where, (*_SAID, "enum", "const"))
    values = schema.get("enum", [schema.get("const")])
    fits = isinstance(values, list) and 0 < len(values) <= _MOST_CHOICES
    if not fits or not all(
        isinstance(value, str | int | bool) and len(str(value)) <= _LONGEST_TEXT for value in values
    ):
        raise _wrong(where, "has no fit enum", f"give at most {_MOST_CHOICES} texts or integers")
    return Literal[tuple(values)]


def _only(schema: Schema, where: str, known: tuple[str, ...]) -> None:
    unknown = sorted(str(key) for key in set(schema) - set(known))
    if unknown:
        shown = [key for key in unknown if _NAME.fullmatch(key.lstrip("$"))]
        raise _wrong(where, f"uses keywords that are not understood ({', '.join(shown)})", "leave them out")


def _wrong(where: str, what: str, remedy: str) -> NotInstallable:
    return NotInstallable(f"the schema of {where} {what}", remedy)
