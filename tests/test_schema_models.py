"""Schemas that come as data: obeyed as JSON Schema says, or refused; never half obeyed, never costly."""

import time
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from contextd.domain.errors import Fault, Invalid, NotInstallable
from contextd.tools.schema_models import input_model, output_model
from contextd.tools.validation import parse

Schema = dict[str, Any]


def of(part: Any, **beside: Any) -> Schema:
    """An object with one field that must be there."""
    return {"type": "object", "properties": {"field": part}, "required": ["field"], **beside}


UNDERSTOOD: list[Schema] = [
    {"type": "string"},
    {"type": "string", "minLength": 2, "maxLength": 3},
    {"type": "string", "pattern": "^[a-c]+$"},
    {"type": "integer", "minimum": 1, "maximum": 5},
    {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 2.5},
    {"type": "boolean"},
    {"type": ["string", "null"]},
    {"type": ["integer", "null"], "minimum": 2},
    {"type": ["null", "null"]},
    {"type": "null"},
    {"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 2},
    {"type": "array"},
    {"enum": ["a", "b", 3]},
    {"const": "a"},
    {"type": "object"},
    {"type": "object", "maxProperties": 1},
    {"type": "object", "additionalProperties": {"type": "integer"}},
    {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
    {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": False},
    {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}},
    {},
]
VALUES: list[Any] = [
    *("", "a", "ab", "abc", "abcd", "zz", 0, 1, 2, 3, 6, -1, 0.5, 2.5, True, False, None),
    *([], [1], [1, 2], [1, 2, 3], ["a"], [{"a": "x"}], [{"a": 1}]),
    *({}, {"a": 1}, {"a": "x"}, {"a": 1, "b": 2}, {"b": 1}, {"a": None}),
]


@pytest.mark.parametrize("part", UNDERSTOOD, ids=str)
def test_what_is_understood_is_taken_and_refused_as_json_schema_says(part: Schema) -> None:
    """Held against another implementation, value by value."""
    schema = of(part)
    model, oracle = input_model(schema, "a test"), Draft202012Validator(schema)
    for value in VALUES:
        try:
            taken = parse(model, {"field": value}).model_dump(mode="json", exclude_unset=True)
        except Invalid:
            taken = None
        assert (taken is not None) == oracle.is_valid({"field": value}), value
        assert taken is None or taken == {"field": value}, "it is passed on as it came"


@pytest.mark.parametrize("part", UNDERSTOOD, ids=str)
def test_what_is_told_to_callers_takes_the_same(part: Schema) -> None:
    told = Draft202012Validator(input_model(of(part), "a test").model_json_schema())
    asked = Draft202012Validator(of(part))
    for value in VALUES:
        assert told.is_valid({"field": value}) == asked.is_valid({"field": value}), value


def deep(levels: int) -> Schema:
    part: Schema = {"type": "string"}
    for _ in range(levels):
        part = {"type": "array", "items": part}
    return part


REFUSED: dict[str, Any] = {
    "no object": {"type": "string"},
    "nothing": {},
    "a reference": of({"$ref": "#"}),
    "a reference elsewhere": of({"$ref": "https://example.org/schema"}),
    "definitions": {"type": "object", "$defs": {}},
    "alternatives": of({"anyOf": [{"type": "string"}]}),
    "conditions": of({"type": "string"}, **{"if": {}, "then": {}}),
    "patterns for names": {"type": "object", "patternProperties": {"^a": {}}},
    "too deep": of(deep(12)),
    "too many fields": {"type": "object", "properties": {f"f{at}": {} for at in range(100)}},
    "too many choices": of({"enum": [str(at) for at in range(1_000)]}),
    "choices of no fit kind": of({"enum": [{"a": 1}]}),
    "no choices": of({"enum": []}),
    "a type that is none": of({"type": "text"}),
    "a type that is no text": of({"type": 7}),
    "a pair of types that are none": of({"type": ["null", {"a": 1}]}),
    "many types": of({"type": ["string", "integer", "null"]}),
    "a part that is no schema": of(True),
    "properties that are none": {"type": "object", "properties": []},
    "required without properties": {"type": "object", "required": ["field"]},
    "required that is no list": {"type": "object", "required": "field"},
    "required of any kind": {"type": "object", "required": [{"a": 1}]},
    "a name that is none": {"type": "object", "properties": {"a b": {}}},
    "a name with a line": {"type": "object", "properties": {"a\nb": {}}},
    "a name of pydantic's": {"type": "object", "properties": {"model_config": {}}},
    "a name of our own": {"type": "object", "properties": {"old_names": {}}},
    "a private name": {"type": "object", "properties": {"_a": {}}},
    "a broken pattern": of({"type": "string", "pattern": "("}),
    "a pattern that looks around": of({"type": "string", "pattern": "(?<=a)b"}),
    "a long pattern": of({"type": "string", "pattern": "a" * 1_000}),
    "a huge pattern": of({"type": "string", "pattern": "((a{1000}){1000}){1000}"}),
    "a bound that is no number": of({"type": "integer", "minimum": "1"}),
    "a length that is no number": of({"type": "string", "maxLength": True}),
    "a length below nothing": of({"type": "string", "maxLength": -1}),
    "a description of two lines": of({"type": "string", "description": "a\nb"}),
    "a long description": of({"type": "string", "description": "a" * 5_000}),
    "further fields by schema": of({"type": "string"}, additionalProperties={"type": "string"}),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_understood_is_refused_when_it_is_installed(name: str) -> None:
    with pytest.raises(NotInstallable):
        input_model(REFUSED[name], "a test")


def test_an_answer_must_not_have_the_fields_of_every_answer() -> None:
    schema = {"type": "object", "properties": {"refs": {"type": "array"}}}
    with pytest.raises(NotInstallable, match="rename refs"):
        output_model(schema, "a test")


def test_an_answer_without_a_schema_is_any_object() -> None:
    answer = output_model(None, "a test").model_validate({"a": [1, {"b": None}]})
    assert answer.model_dump(mode="json", exclude_unset=True) == {"a": [1, {"b": None}]}


def test_a_pattern_made_to_take_forever_does_not() -> None:
    model = input_model(of({"type": "string", "pattern": "^(a+)+$"}), "a test")
    started = time.monotonic()
    with pytest.raises(Fault):
        parse(model, {"field": "a" * 50_000 + "!"})
    assert time.monotonic() - started < 1.0
