"""The front matter of a SKILL.md: cut off, understood, and written."""

import json
import math
import re
from collections.abc import Mapping
from typing import Any, Final

from contextd.domain.records import Json
from contextd.services.flat_yaml import Plain, parse, refusal

_MARK: Final = "---"
_KEY: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_TEXT: Final = re.compile(r"[A-Za-z](?:[A-Za-z0-9 _./,()'-]*[A-Za-z0-9_./)'])?")
_UNPRINTABLE: Final = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_INTEGER: Final = re.compile(r"[-+]?[0-9]{1,400}")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_WORDS: Final[Mapping[str, bool | None]] = {"true": True, "false": False, "null": None, "~": None, "": None}
_OTHER_MEANINGS: Final = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
"""Words that some reader of YAML takes for something else than text."""


def read(text: str) -> tuple[dict[str, Any], str]:
    """What is between the marks, with plain scalars as Plain, and what follows. Raises BadFormat."""
    text = text.removeprefix("\ufeff")
    if text.startswith(f"{_MARK}\r\n"):
        text = text.replace("\r\n", "\n")
    first, *lines = text.split("\n")
    if first.rstrip() != _MARK:
        raise refusal(1, "there is no front matter", "begin with '---', name, description and '---'")
    for number, line in enumerate(lines):
        if line.rstrip() == _MARK:
            return parse(lines[:number], first=2), "\n".join(lines[number + 1 :])
    raise refusal(1, "the front matter has no end", "end it with a line '---'")


def typed(value: Any) -> Json:
    """The value with each plain scalar as the boolean, number, null or text that it stands for."""
    if isinstance(value, Plain):
        return _typed_scalar(value)
    if isinstance(value, list):
        return [typed(each) for each in value]
    if isinstance(value, dict):
        return {key: typed(each) for key, each in value.items()}
    plain: Json = value
    return plain


def write(fields: Mapping[str, Json]) -> str:
    """Between marks, so that `read` and every reader of YAML find the same."""
    lines = [_MARK]
    for key, value in fields.items():
        if isinstance(value, dict) and value and all(map(is_plain_key, value)):
            lines += [f"{key}:", *(f"  {inner}: {_flow(each)}" for inner, each in value.items())]
        else:
            lines.append(f"{key}: {_flow(value)}")
    return "".join(f"{line}\n" for line in (*lines, _MARK))


def is_plain_key(key: str) -> bool:
    return bool(_KEY.fullmatch(key)) and key.lower() not in _OTHER_MEANINGS


def _typed_scalar(text: str) -> Json:
    if text.lower() in _WORDS and text in (text.lower(), text.capitalize(), text.upper()):
        return _WORDS[text.lower()]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text) and math.isfinite(number := float(text)):
        return number
    return str(text)


def _flow(value: Json) -> str:
    """As JSON, which is YAML too, unless it is text that needs no quotes."""
    if isinstance(value, str) and _TEXT.fullmatch(value) and value.lower() not in _OTHER_MEANINGS:
        return value
    written = json.dumps(value, ensure_ascii=False)
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", written)
