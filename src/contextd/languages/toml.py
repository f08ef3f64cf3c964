"""TOML: tables, and keys before the first table whose values take several lines."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from contextd.domain.code import Outline
from contextd.languages.language import Language
from contextd.languages.sections import Head, commented, lines_of, settings_outline

_TABLE: Final = re.compile(r"[ \t]*\[\[?([^\[\]]+)\]\]?[ \t]*(?:#.*)?$")
_KEY: Final = re.compile(r"([A-Za-z0-9_.\"'-]+)[ \t]*=")
_ASIDE: Final = re.compile(r"\"(?:[^\"\\]|\\.)*+\"|'[^']*+'|#.*")
_LONG_STRING: Final = re.compile(r"\"\"\"|'''")


def _sections(text: str) -> Outline:
    lines = lines_of(text)
    starts = list(_starts(lines))
    ends = [*(line - 1 for line, _, _ in starts[1:]), len(lines)]
    heads = [
        commented(lines, Head(line, name), "#")
        for (line, name, is_table), end in zip(starts, ends, strict=False)
        if is_table or any(_ASIDE.sub("", each).strip() for each in lines[line:end])
    ]
    return settings_outline(lines, heads)


def _starts(lines: Sequence[str]) -> Iterator[tuple[int, str, bool]]:
    """Of tables and of the keys before them: the line, the name, and whether it is a table."""
    quote, depth, in_table = "", 0, False
    for number, line in enumerate(lines, 1):
        if quote:
            quote = "" if quote in line else quote
            continue
        if depth == 0 and (table := _TABLE.match(line)):
            in_table = True
            yield number, table[1].strip().replace('"', ""), True
            continue
        if depth == 0 and not in_table and (key := _KEY.match(line)):
            yield number, key[1].strip("\"'"), False
        opened = _LONG_STRING.search(line)
        if opened is not None and line.count(opened[0]) % 2:
            quote = opened[0]
            continue
        depth = max(0, depth + _balance(_ASIDE.sub("", line)))


def _balance(bare: str) -> int:
    return bare.count("[") + bare.count("{") - bare.count("]") - bare.count("}")


LANGUAGE = Language(name="toml", suffixes=(".toml",), names=("Pipfile",), sections=_sections, is_code=False)
