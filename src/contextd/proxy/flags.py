"""From the command line or a JSON document to a tool's arguments, by its schema."""

from __future__ import annotations

import json
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Schema = dict[str, Any]

_TRUE = ("true", "yes", "on", "1")
_FALSE = ("false", "no", "off", "0")


class Usage(Exception):
    """What was typed cannot be understood; the message says what can."""


def arguments_of(words: list[str], schema: Schema) -> Schema:
    """`--a-flag value`, `--a-flag=value`, `--a-flag`, `--no-a-flag`; a word alone is the next field.

    Raises Usage.
    """
    properties = schema.get("properties", {})
    found: Schema = {}
    alone: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            alone += rest
            break
        if word.startswith("--") and len(word) > 2:
            _take(word[2:], rest, properties, found)
        else:
            alone.append(word)
    _place(alone, schema, found)
    return found


def _take(flag: str, rest: list[str], properties: Schema, found: Schema) -> None:
    flag, equals, value = flag.partition("=")
    name = flag.replace("-", "_")
    if (
        name not in properties
        and name.startswith("no_")
        and _kind(properties.get(name[3:], {})) == "boolean"
    ):
        found[name[3:]] = False
        return
    if name not in properties:
        raise Usage(f"there is no --{flag}: {_near(name, properties)}")
    kind = _kind(properties[name])
    if not equals:
        if kind == "boolean" and (not rest or rest[0].lower() not in (*_TRUE, *_FALSE)):
            found[name] = True
            return
        if not rest:
            raise Usage(f"--{flag} needs a value")
        value = rest.pop(0)
    _put(name, kind, value, found)


def _put(name: str, kind: str, value: str, found: Schema) -> None:
    if kind == "array" and not value.lstrip().startswith("["):
        found.setdefault(name, []).append(value)
    elif kind == "object" and not value.lstrip().startswith("{"):
        key, equals, inner = value.partition("=")
        if not equals:
            raise Usage(f"--{_flag(name)} takes a JSON object or KEY=VALUE")
        found.setdefault(name, {})[key] = inner
    elif name in found:
        raise Usage(f"--{_flag(name)} was given twice")
    else:
        found[name] = _value(name, kind, value)


def _value(name: str, kind: str, value: str) -> object:
    if kind == "string":
        return value
    if kind == "boolean":
        if value.lower() not in (*_TRUE, *_FALSE):
            raise Usage(f"--{_flag(name)} takes true or false")
        return value.lower() in _TRUE
    try:
        read: object = json.loads(value)
    except ValueError:
        raise Usage(f"--{_flag(name)} takes {_article(kind)}") from None
    return read


def _place(alone: list[str], schema: Schema, found: Schema) -> None:
    """Words without a flag go to what is required and was not named, the project last."""
    properties = schema.get("properties", {})
    project = project_field(schema)
    open_fields = [name for name in schema.get("required", ()) if name not in found and name != project]
    if len(alone) > len(open_fields):
        takes = " ".join(name.upper() for name in open_fields) or "no words without a flag"
        raise Usage(f"too many words: it takes {takes}")
    for name, word in zip(open_fields, alone, strict=False):
        _put(name, _kind(properties[name]), word, found)


def parse_document(text: str) -> Schema:
    """Raises Usage."""
    try:
        value = json.loads(text) if text.strip() else {}
    except ValueError as error:
        raise Usage(f"standard input is not JSON ({error})") from None
    if not isinstance(value, dict):
        raise Usage("give a JSON object of named fields")
    return value


def with_project(arguments: Schema, schema: Schema, folder: str) -> Schema:
    """A project that is required and was not named is the one around the current folder."""
    field = project_field(schema)
    if field is None:
        return arguments
    given = arguments.get(field)
    if given is None:
        return (
            {**arguments, field: project_root(folder)} if field in schema.get("required", ()) else arguments
        )
    if (
        isinstance(given, str)
        and given
        and not given.startswith(("/", "~"))
        and ".." not in given.split("/")
    ):
        return {**arguments, field: os.path.normpath(os.path.join(folder, given))}
    return arguments


def project_field(schema: Schema) -> str | None:
    """`project_path`, or where there is none, `path`: of the code tools."""
    properties = schema.get("properties", {})
    return next((name for name in ("project_path", "path") if name in properties), None)


def project_root(folder: str) -> str:
    """The nearest folder with a repository, or else this one. An empty `.git` is none, as for git."""
    at = folder
    while True:
        if os.path.isfile(f"{at}/.git") or os.path.exists(f"{at}/.git/HEAD"):
            return at
        above = os.path.dirname(at)
        if above == at:
            return folder
        at = above


def usage(tool: str, document: Schema) -> str:
    """What `--help` prints."""
    schema = document["input"]
    required = schema.get("required", ())
    lines = [f"{tool}: {document.get('description', '')}", "", f"  {tool} [--FIELD VALUE]...", ""]
    for name, field in schema.get("properties", {}).items():
        need = " (required)" if name in required else ""
        told = f"  {field['description']}" if field.get("description") else ""
        lines.append(f"  --{_flag(name):22s} {_kind(field):8s}{need}{told}")
    return "\n".join(
        [
            *lines,
            "",
            "  -      read the fields as a JSON object from standard input",
            "  --text  content alone",
        ]
    )


def _kind(field: Schema) -> str:
    """The JSON type that a flag's word is read as."""
    for part in (field, *field.get("anyOf", ())):
        if "$ref" in part:
            return "object"
        kind = part.get("type")
        if isinstance(kind, str) and kind != "null":
            return kind
    return "string"


def _flag(name: str) -> str:
    return name.replace("_", "-")


def _article(kind: str) -> str:
    return {"integer": "a whole number", "number": "a number"}.get(kind, f"a JSON {kind}")


def _near(name: str, properties: Schema) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, properties, 1)
    if near:
        return f"did you mean --{_flag(near[0])}?"
    return "use " + ", ".join(f"--{_flag(each)}" for each in properties) if properties else "it takes none"
