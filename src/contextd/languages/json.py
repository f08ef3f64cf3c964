"""JSON, with comments or without: top-level keys whose values take several lines."""

import re
from collections.abc import Iterator
from typing import Final

from contextd.domain.code import Outline
from contextd.languages.language import Language
from contextd.languages.sections import LARGEST, Head, lines_of, settings_outline

_TOKEN: Final = re.compile(r"\"(?:[^\"\\\n]|\\.)*+\"?|//[^\n]*+|/\*|[{}\[\],:\n]")


def _sections(text: str) -> Outline:
    if len(text) > LARGEST:
        return Outline()
    lines = lines_of(text)
    return settings_outline(lines, list(_heads(text)))


def _heads(text: str) -> Iterator[Head]:
    """A key of the outermost object whose value has ended on a later line."""
    opened: list[str] = []
    name, start, string = "", 0, ""
    for token, line in _tokens(text):
        if token[0] == '"':
            string = token.strip('"')
        elif token in ("{", "["):
            opened.append(token)
        elif token in ("}", "]") and opened:
            opened.pop()
            if len(opened) == 1 and name:
                if line > start:
                    yield Head(start, name, last=line)
                name = ""
        elif token == ":" and opened == ["{"]:
            name, start = string, line


def _tokens(text: str) -> Iterator[tuple[str, int]]:
    """Strings and marks with their lines; comments are left out."""
    line, at = 1, 0
    while (found := _TOKEN.search(text, at)) is not None:
        token, at = found[0], found.end()
        if token == "\n":
            line += 1
        elif token == "/*":
            end = text.find("*/", at)
            end = len(text) if end < 0 else end + 2
            line += text.count("\n", at, end)
            at = end
        elif not token.startswith("//"):
            yield token, line


LANGUAGE = Language(
    name="json",
    suffixes=(".json", ".jsonc", ".json5", ".webmanifest"),
    names=(".babelrc", ".eslintrc", ".prettierrc"),
    sections=_sections,
    is_code=False,
)
