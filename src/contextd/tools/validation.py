"""Arguments into a tool's input, or a fault that names the field and says what to give."""

import math
from collections.abc import Mapping
from typing import Any, Final, TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from contextd.domain.errors import (
    BadFormat,
    BadLength,
    BadPath,
    BadText,
    EmptyQuery,
    Invalid,
    MissingField,
    NotAChoice,
    OutOfRange,
    UnknownField,
    WrongType,
)
from contextd.tools.declaration import AnyTool, Input, Terms

I = TypeVar("I", bound=Input)  # noqa: E741 - input

Schema = Mapping[str, Any]
"""Of JSON, as pydantic makes it."""

_MOST_DEPTH: Final = 64
_NOTHING_SAID: Final = Terms.model_construct()

_FAULTS: Final[Mapping[str, type[Invalid]]] = {
    "missing": MissingField,
    "extra_forbidden": UnknownField,
    "string_too_short": BadLength,
    "string_too_long": BadLength,
    "too_short": BadLength,
    "too_long": BadLength,
    "bad_length": BadLength,
    "blank": BadLength,
    "greater_than_equal": OutOfRange,
    "less_than_equal": OutOfRange,
    "greater_than": OutOfRange,
    "less_than": OutOfRange,
    "finite_number": OutOfRange,
    "literal_error": NotAChoice,
    "enum": NotAChoice,
    "bad_path": BadPath,
    "bad_text": BadText,
    "empty_query": EmptyQuery,
    "bad_format": BadFormat,
}
"""Pydantic's error types, and ours, to faults. The rest are wrong types."""


def parse_call(tool: AnyTool, arguments: object) -> tuple[Terms, Any]:
    """What is said about the call, and what is asked of the tool. Raises Invalid."""
    if not isinstance(arguments, dict) or not (said := tool.terms & arguments.keys()):
        return _NOTHING_SAID, parse(tool.input, arguments)
    terms = parse(Terms, {name: arguments[name] for name in said})
    return terms, parse(tool.input, {key: value for key, value in arguments.items() if key not in said})


def parse(model: type[I], arguments: object) -> I:
    """Raises Invalid for the first thing that is wrong."""
    if not isinstance(arguments, dict):
        raise WrongType("arguments", "arguments must be an object", "send a JSON object of named fields")
    _check_json(arguments, "", 0)
    renamed = _with_new_names(model, arguments)
    try:
        return model.model_validate(renamed)
    except ValidationError as error:
        raise _explain(model, error.errors(include_url=False, include_input=False)[0]) from None


def _with_new_names(model: type[Input], arguments: dict[str, Any]) -> dict[str, Any]:
    old = [name for name in model.old_names if name in arguments and model.old_names[name] not in arguments]
    if not old:
        return arguments
    return {model.old_names.get(name, name) if name in old else name: v for name, v in arguments.items()}


def _check_json(value: object, field: str, depth: int) -> None:
    """No NUL and no lone surrogate anywhere: neither can be stored or sent as UTF-8. No NaN and no
    infinity either, which Python's and the SDK's parsers let through: they could not be answered with."""
    if isinstance(value, str):
        if "\x00" in value:
            raise BadText(field, f"{field} contains a NUL character", "remove it")
        if not value.isascii() and any("\ud800" <= char <= "\udfff" for char in value):
            raise BadText(field, f"{field} is not valid Unicode", "send no lone surrogates")
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise OutOfRange(field, f"{field} holds a number that is not finite", "send finite numbers")
    elif isinstance(value, dict | list):
        if depth >= _MOST_DEPTH:
            raise BadFormat(field, f"{field} is nested too deeply", f"use at most {_MOST_DEPTH} levels")
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in items:
            name = field or (str(key) if isinstance(key, str) and key.isidentifier() else "arguments")
            _check_json(key, name, depth + 1)
            _check_json(item, name, depth + 1)


def _explain(model: type[Input], error: ErrorDetails) -> Invalid:
    path = error["loc"]
    name = str(path[0]) if path else "arguments"
    schema = model.model_json_schema()
    fault = _FAULTS.get(error["type"], WrongType)
    if fault is UnknownField:
        return _unknown(path, schema)
    where, wanted = _place(path, schema)
    if fault is MissingField:
        return MissingField(name, f"{where} is required", f"give {_wanted(wanted, schema)}")
    return fault(name, f"{where} {_problem(error)}", _remedy(fault, wanted, schema))


def _unknown(path: tuple[int | str, ...], schema: Schema) -> UnknownField:
    """The name is the caller's own text, so it is repeated only when it is a plain one."""
    *outer, last = path
    shown = str(last) if str(last).isidentifier() and len(str(last)) <= 50 else "a field"
    where, around = _place(tuple(outer), schema)
    beside = Terms.model_fields if not outer else {}
    known = ", ".join(dict.fromkeys((*_resolved(around, schema).get("properties", {}), *beside)))
    remedy = f"known fields: {known}"
    if not outer:
        return UnknownField(shown, f"{shown} is not a field of this tool", remedy)
    return UnknownField(str(outer[0]), f"{shown} is not a field of {where}", remedy)


def _remedy(fault: type[Invalid], wanted: Schema, root: Schema) -> str | None:
    """None where the fault's own hint says more than the schema."""
    if fault in (BadPath, BadText, EmptyQuery):
        return None
    text = "text of " if fault is WrongType and "maxLength" in wanted else ""
    return f"give {text}{_wanted(wanted, root)}"


def _place(path: tuple[int | str, ...], root: Schema) -> tuple[str, Schema]:
    """Its name as `tags[3]` or `anchors[0].file`, and the schema of what belongs there.

    Keys of an object that takes any are the caller's text, and are not repeated.
    """
    label, at = "", root
    for part in path:
        at = _resolved(at, root)
        if isinstance(part, int) and "items" in at:
            label, at = f"{label}[{part}]", at["items"]
        elif part in at.get("properties", {}):
            label, at = f"{label}.{part}" if label else str(part), at["properties"][part]
        else:
            break
    return label or "arguments", at


def _resolved(schema: Schema, root: Schema) -> Schema:
    """What stands behind a reference, or the one alternative to null."""
    if "$ref" in schema:
        found: Schema = root["$defs"][schema["$ref"].rsplit("/", 1)[1]]
        return found
    parts = [part for part in schema.get("anyOf", ()) if part.get("type") != "null"]
    return _resolved(parts[0], root) if len(parts) == 1 else schema


def _problem(error: ErrorDetails) -> str:
    match error["type"]:
        case "string_too_short" | "too_short":
            return "is too short"
        case "string_too_long" | "too_long":
            return "is too long"
        case "greater_than_equal" | "less_than_equal" | "greater_than" | "less_than" | "finite_number":
            return "is out of range"
        case "literal_error" | "enum":
            return "is not one of its values"
        case kind if kind in _FAULTS:
            return error["msg"]
        case _:
            return "has the wrong type"


def _wanted(schema: Schema, root: Schema) -> str:  # noqa: PLR0911 - one return a type
    """What a field takes, in words, from its JSON Schema."""
    schema = _resolved(schema, root)
    if "anyOf" in schema:
        return " or ".join(_wanted(part, root) for part in schema["anyOf"] if part.get("type") != "null")
    if "enum" in schema:
        return "one of: " + ", ".join(str(value) for value in schema["enum"])
    if "const" in schema:
        return str(schema["const"])
    match schema.get("type"):
        case "string":
            return _range(schema.get("minLength", 0), schema.get("maxLength"), "characters")
        case "integer" | "number":
            noun = "an integer" if schema["type"] == "integer" else "a number"
            least, most = schema.get("minimum", 0), schema.get("maximum")
            return noun if most is None else f"{noun} from {least} to {most}"
        case "array":
            inner = _wanted(schema.get("items", {}), root)
            most = f"at most {schema['maxItems']} items" if "maxItems" in schema else "items"
            return f"a list of {most}, each {inner}"
        case "boolean":
            return "true or false"
        case _:
            most = f" of at most {schema['maxProperties']} fields" if "maxProperties" in schema else ""
            return f"an object{most}"


def _range(least: int, most: int | None, noun: str) -> str:
    if most is None:
        return f"at least {least} {noun}" if least else "text"
    if least == most:
        return f"{most} {noun}"
    return f"{least} to {most} {noun}" if least else f"at most {most} {noun}"
