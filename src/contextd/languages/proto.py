"""Protocol Buffers: messages, enums, services with their calls, and the types that these name."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from contextd.domain.code import Import, Outline, Reference, SymbolKind
from contextd.languages.language import Language
from contextd.languages.sections import Head, code_outline, commented, lines_of

_TOKEN: Final = re.compile(r"//[^\n]*+|/\*|\"(?:[^\"\\\n]|\\.)*+\"?|[{};\n]|[^{};\n\"/]++|/")
_DEFINED: Final = re.compile(r"(message|enum|service|rpc)\s+(\w+)")
_KINDS: Final[dict[str, SymbolKind]] = {
    "message": "struct",
    "enum": "enum",
    "service": "interface",
    "rpc": "method",
}
_RPC_TYPE: Final = re.compile(r"\(\s*(?:stream\s+)?\.?([\w.]+)\s*\)")
_FIELD: Final = re.compile(
    r"(?:(?:repeated|optional|required)\s+)?(?:map\s*<\s*\w+\s*,\s*)?\.?([A-Za-z_][\w.]*)\s*>?\s+\w+\s*=\s*\d+"
)
_SCALARS: Final = frozenset(
    """
    double float int32 int64 uint32 uint64 sint32 sint64 fixed32 fixed64 sfixed32 sfixed64 bool string bytes
    option reserved extensions
    """.split()
)
_MARKS: Final = ("//", "/*", "*")


@dataclass(slots=True)
class _Seen:
    """What the statements of one file amount to; `open` has an index into `heads` for each brace, or -1."""

    heads: list[Head] = field(default_factory=list)
    open: list[int] = field(default_factory=list)
    imports: list[Import] = field(default_factory=list)
    uses: list[Reference] = field(default_factory=list)
    package: str = ""


def _sections(text: str) -> Outline:
    lines = lines_of(text)
    seen = _Seen()
    for statement, start, end, mark in _statements(text):
        if mark == "}":
            closed = seen.open.pop() if seen.open else -1
            if closed >= 0:
                seen.heads[closed] = replace(seen.heads[closed], last=end)
            continue
        defined = _take(seen, statement, start, end)
        if mark == "{":
            seen.open.append(len(seen.heads) - 1 if defined else -1)
    heads = [commented(lines, head, *_MARKS) for head in seen.heads]
    return code_outline(lines, heads, seen.imports, seen.uses, seen.package)


def _take(seen: _Seen, statement: str, start: int, end: int) -> bool:
    """One statement; whether it defines something."""
    found = _DEFINED.match(statement)
    if found is not None:
        seen.heads.append(Head(start, found[2], 1 + len(seen.open), _KINDS[found[1]], statement, last=end))
        if found[1] == "rpc":
            seen.uses.extend(_use(name, start) for name in _RPC_TYPE.findall(statement))
        return True
    if statement.startswith("package "):
        seen.package = statement[8:].strip()
    elif statement.startswith("import "):
        path = statement.rpartition(" ")[2].strip("\"'")
        seen.imports.append(Import(path, path.rsplit("/", 1)[-1].removesuffix(".proto")))
    elif (used := _FIELD.match(statement)) and used[1] not in _SCALARS:
        seen.uses.append(_use(used[1], start))
    return False


def _use(name: str, line: int) -> Reference:
    qualifier, _, last = name.rpartition(".")
    return Reference(last or name, "type", line, qualifier)


def _statements(text: str) -> Iterator[tuple[str, int, int, str]]:
    """What stands before each brace and semicolon: the text in one line, its lines, and the mark."""
    line, start, at = 1, 0, 0
    parts: list[str] = []
    while (token := _TOKEN.match(text, at)) is not None:
        at = token.end()
        if token[0] == "\n":
            line += 1
            parts.append(" ")
        elif token[0] == "/*":
            end = text.find("*/", at)
            end = len(text) if end < 0 else end + 2
            line += text.count("\n", at, end)
            at = end
        elif token[0] in ("{", "}", ";"):
            yield " ".join("".join(parts).split()), start or line, line, token[0]
            start = 0
            parts.clear()
        elif not token[0].startswith("//"):
            start = start or (line if token[0].strip() else 0)
            parts.append(token[0])


LANGUAGE = Language(name="proto", suffixes=(".proto",), sections=_sections)
