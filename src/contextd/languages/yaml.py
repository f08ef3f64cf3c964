"""YAML: top-level keys whose values take several lines, and the keys inside of long ones."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Final

from contextd.domain.code import Outline
from contextd.languages.blocks import indent_of
from contextd.languages.language import Language
from contextd.languages.sections import LARGEST, Head, commented, lines_of, settings_outline

_KEY: Final = re.compile(r"([A-Za-z0-9_.\"'/$<~*-][^:#{}\[\],]*):(?=[ \t]|$)(.*)$")
_ITEM: Final = re.compile(r"-[ \t]+name:[ \t]+([^\s#].*)$")
_SCALAR: Final = re.compile(r"[ \t]*[|>][+\-0-9]*[ \t]*(?:#.*)?$")
_LONG: Final = 20
"""Keys of more lines than this are worth a second level: the services, the jobs."""


def _sections(text: str) -> Outline:
    if len(text) > LARGEST:
        return Outline()
    lines = lines_of(text)
    return settings_outline(lines, list(_heads(lines)))


def _heads(lines: Sequence[str]) -> Iterator[Head]:
    for line, last in _blocks(lines):
        item = _ITEM.match(lines[line - 1])
        key = _KEY.match(lines[line - 1]) if item is None else None
        found = item or key
        if found is None or last == line:
            continue
        yield commented(lines, Head(line, _bare(found[1]), last=last), "#")
        if key is not None and last - line > _LONG and not _SCALAR.match(key[2]):
            yield from _inner(lines, line, last)


def _blocks(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Lines that begin at the left, each with the last line of what belongs to it."""
    start = last = 0
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        if start and (line[0] in " \t" or _is_listed(lines[start - 1], line)):
            last = number
            continue
        if start:
            yield start, last
        start = last = number
    if start:
        yield start, last


def _is_listed(key: str, line: str) -> bool:
    """A list may stand as far to the left as its key."""
    return line.startswith(("- ", "-\t")) and key.rstrip().endswith(":") and not key.startswith("-")


def _inner(lines: Sequence[str], line: int, last: int) -> Iterator[Head]:
    inside = [
        at for at in range(line + 1, last + 1) if lines[at - 1].strip() and lines[at - 1].lstrip()[0] != "#"
    ]
    if not inside:
        return
    indent = indent_of(lines[inside[0] - 1])
    starts = [at for at in inside if indent_of(lines[at - 1]) == indent]
    for start, after in zip(starts, [*starts[1:], last + 1], strict=True):
        key = _KEY.match(lines[start - 1], indent)
        until = inside[bisect_left(inside, after) - 1]
        if key is not None and until > start:
            yield commented(lines, Head(start, _bare(key[1]), 2, last=until), "#")


def _bare(name: str) -> str:
    return name.strip(" \t\"'")


LANGUAGE = Language(
    name="yaml",
    suffixes=(".yaml", ".yml"),
    names=(".clang-format", ".clang-tidy"),
    sections=_sections,
    is_code=False,
)
