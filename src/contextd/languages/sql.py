"""SQL: what is created, and which tables are named elsewhere."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Final

from contextd.domain.code import Outline, Reference, SymbolKind
from contextd.languages.language import Language
from contextd.languages.sections import LARGEST, Head, code_outline, commented, lines_of

_PART: Final = r"(?:[\w$]+|\"[^\"\n]+\"|`[^`\n]+`|\[[^\[\]\n]+\])"
_NAME: Final = rf"({_PART}(?:\.{_PART})*+)"
_CREATE: Final = re.compile(
    rf"""
    CREATE\s+(?:OR\s+REPLACE\s+)?(?:DEFINER\s*=\s*\S+\s+)?
    (?:(?:GLOBAL|LOCAL|TEMP|TEMPORARY|UNLOGGED|MATERIALIZED|RECURSIVE|VIRTUAL|EXTERNAL|CONSTRAINT)\s+)*
    (TABLE|VIEW|FUNCTION|PROCEDURE|TRIGGER|TYPE|DOMAIN)\s+(?:IF\s+NOT\s+EXISTS\s+)?{_NAME}
    """,
    re.IGNORECASE | re.VERBOSE,
)
_USED: Final = re.compile(
    rf"\b(?:FROM|JOIN|INTO|UPDATE|REFERENCES|ALTER\s+TABLE)\s+(?:ONLY\s+|IF\s+EXISTS\s+)*{_NAME}",
    re.IGNORECASE,
)
_NO_TABLES: Final = frozenset(
    "cascade current dual lateral no of on only or restrict select set unnest values where".split()
)
_MARK: Final = re.compile(r"--[^\n]*|/\*|'|\"|`|\$(?:[A-Za-z_]\w*)?\$|;")
_CLOSED_BY: Final = {"/*": "*/", "'": "'", '"': '"', "`": "`"}
_ROUTINE_BODY: Final = re.compile(r"\b(?:AS|IS|BEGIN|LANGUAGE|RETURN)\b|\$|;", re.IGNORECASE)
_BEGIN: Final = re.compile(r"\bBEGIN\b", re.IGNORECASE)
_END: Final = re.compile(r"\s*END\b", re.IGNORECASE)
_COMMENT: Final = re.compile(r"--[^\n]*")
_KINDS: Final[dict[str, SymbolKind]] = {
    "FUNCTION": "function",
    "PROCEDURE": "function",
    "TYPE": "type",
    "DOMAIN": "type",
}


def _sections(text: str) -> Outline:
    lines = lines_of(text)
    starts = [0, *accumulate(len(line) + 1 for line in text.split("\n"))]
    found = list(_heads(text, lines, starts))
    uses = _uses(text, starts, {at for _, at in found}) if len(text) <= LARGEST else ()
    return code_outline(lines, [head for head, _ in found], uses=list(uses))


def _heads(text: str, lines: Sequence[str], starts: Sequence[int]) -> Iterator[tuple[Head, int]]:
    """What is created, each with the place of its name."""
    statements = list(_statements(text))
    for at, (start, end) in enumerate(statements):
        found = _CREATE.match(text, start, end)
        if found is None:
            continue
        sort = found[1].upper()
        is_routine = sort in ("FUNCTION", "PROCEDURE", "TRIGGER")
        is_bare = is_routine and "$" not in text[start:end] and _BEGIN.search(text, start, end) is not None
        until = _routine_end(text, statements, at) if is_bare else end
        schema, _, name = re.sub(r"[\"`\[\]]", "", found[2]).rpartition(".")
        head = Head(
            bisect_right(starts, start),
            name,
            kind=_KINDS.get(sort, "section"),
            signature=_signature(text, found, until if is_routine else 0),
            container=schema,
            last=bisect_right(starts, max(start, until - 1)),
        )
        yield commented(lines, head, "--"), found.start(2)


def _signature(text: str, found: re.Match[str], end: int) -> str:
    """Of a routine with its parameters and what it returns; of others the name."""
    body = _ROUTINE_BODY.search(text, found.end(), end) if end else None
    until = body.start() if body is not None else end or found.end()
    return " ".join(text[found.start() : until].split())


def _routine_end(text: str, statements: Sequence[tuple[int, int]], at: int) -> int:
    """Without quotes around its body, a routine goes on until its `END`."""
    for after in range(at + 1, len(statements)):
        start, end = statements[after]
        if _CREATE.match(text, start, end):
            break
        if _END.match(text, start, end):
            return end
    return statements[at][1]


def _statements(text: str) -> Iterator[tuple[int, int]]:
    """Where statements begin and end; a semicolon in a string, a comment or a quoted body ends none."""
    start = _skipped(text, 0)
    at = start
    while (mark := _MARK.search(text, at)) is not None:
        at = mark.end()
        if mark[0] == ";":
            yield start, at
            start = at = _skipped(text, at)
        elif not mark[0].startswith("--"):
            closing = _CLOSED_BY.get(mark[0], mark[0])
            end = text.find(closing, at)
            at = len(text) if end < 0 else end + len(closing)
    if start < len(text):
        yield start, len(text.rstrip())


def _skipped(text: str, at: int) -> int:
    """Behind blanks and comments."""
    while at < len(text):
        if text[at].isspace():
            at += 1
        elif text.startswith("--", at):
            end = text.find("\n", at)
            at = len(text) if end < 0 else end
        elif text.startswith("/*", at):
            end = text.find("*/", at)
            at = len(text) if end < 0 else end + 2
        else:
            break
    return at


def _uses(text: str, starts: Sequence[int], defined: set[int]) -> Iterator[Reference]:
    bare = _COMMENT.sub(lambda found: " " * len(found[0]), text)
    for found in _USED.finditer(bare):
        schema, _, name = re.sub(r"[\"`\[\]]", "", found[1]).rpartition(".")
        if found.start(1) not in defined and name.lower() not in _NO_TABLES:
            yield Reference(name, "type", bisect_right(starts, found.start(1)), schema)


LANGUAGE = Language(name="sql", suffixes=(".sql", ".ddl", ".psql"), sections=_sections)
