"""Markdown: a section is a heading with what stands below it, until the next heading."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from contextd.domain.code import Outline
from contextd.languages.language import Language
from contextd.languages.sections import Head, lines_of, outline

_HEADING: Final = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*))?$")
_CLOSING: Final = re.compile(r"(?:^|[ \t])#+$")
_UNDERLINE: Final = re.compile(r" {0,3}(?:=+|-{2,})[ \t]*$")
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})(.*)$")
_NO_TITLE: Final = re.compile(r" {4}|\t|[ \t]*(?:$|[>|#<]|[-*+][ \t]|\d+[.)][ \t])")
"""What an underline does not make a heading of: code, lists, quotes, tables."""
_NO_PARAGRAPH: Final = re.compile(
    r"[ \t]*(?:$|[>|#<]|!?\[!?\[?[^\]]*\]\([^)]*\)[ \t]*$|[-*+=_ \t]+$|\[!\[)"
)
"""What says nothing about its section: badges, tags, tables, rules."""

_LINK: Final = re.compile(r"!?\[([^\[\]]*)\](?:\([^()]*\)|\[[^\[\]]*\])")
_TAG: Final = re.compile(r"</?[A-Za-z][^<>]*>|\{#[^{}]*\}")
_EMPHASIS: Final = re.compile(r"\*\*|__|~~|`|(?<!\w)[*_](?=\S)|(?<=\S)[*_](?!\w)")


def _sections(text: str) -> Outline:
    lines = lines_of(text)
    return outline(lines, list(_heads(lines)))


def _heads(lines: Sequence[str]) -> Iterator[Head]:
    prose = _prose(lines)
    for at, line in enumerate(lines):
        if not prose[at]:
            continue
        found = _HEADING.match(line)
        if found is not None:
            yield _head(lines, prose, at, len(found[1]), _CLOSING.sub("", (found[2] or "").strip()), 1)
        elif _is_underlined(lines, prose, at):
            level = 1 if lines[at + 1].lstrip().startswith("=") else 2
            yield _head(lines, prose, at, level, line, 2)


def _head(lines: Sequence[str], prose: Sequence[bool], at: int, level: int, title: str, rows: int) -> Head:
    return Head(at + 1, _plain(title), level, doc=_first_line(lines, prose, at + rows), rows=rows)


def _is_underlined(lines: Sequence[str], prose: Sequence[bool], at: int) -> bool:
    """Only titles of one line: below a paragraph, dashes are mostly meant as a rule."""
    if at + 1 >= len(lines) or not prose[at + 1] or _UNDERLINE.match(lines[at + 1]) is None:
        return False
    is_alone = at == 0 or not prose[at - 1] or not lines[at - 1].strip() or _HEADING.match(lines[at - 1])
    return bool(is_alone) and _NO_TITLE.match(lines[at]) is None and _UNDERLINE.match(lines[at]) is None


def _prose(lines: Sequence[str]) -> list[bool]:
    """Which lines are text, and not front matter, code between fences, or a comment."""
    prose = [True] * len(lines)
    fence = ""
    is_comment = False
    start = _after_front_matter(lines)
    prose[:start] = [False] * start
    for at in range(start, len(lines)):
        line = lines[at]
        if fence:
            prose[at] = False
            closed = _FENCE.match(line)
            if closed and closed[1].startswith(fence) and not closed[2].strip():
                fence = ""
        elif is_comment:
            prose[at] = False
            is_comment = "-->" not in line
        elif (opened := _FENCE.match(line)) and not (opened[1][0] == "`" and "`" in opened[2]):
            prose[at] = False
            fence = opened[1]
        elif line.lstrip().startswith("<!--"):
            prose[at] = False
            is_comment = "-->" not in line
    return prose


def _after_front_matter(lines: Sequence[str]) -> int:
    mark = lines[0].rstrip().lstrip("\ufeff") if lines else ""
    if mark not in ("---", "+++"):
        return 0
    return next((at + 1 for at in range(1, len(lines)) if lines[at].rstrip() in (mark, "...")), 0)


def _first_line(lines: Sequence[str], prose: Sequence[bool], start: int) -> str:
    """Of the section's first paragraph; a section without one has no doc."""
    for at in range(start, len(lines)):
        line = lines[at]
        if not prose[at] or not line.strip():
            continue
        if _HEADING.match(line) or _is_underlined(lines, prose, at):
            return ""
        if _NO_PARAGRAPH.match(line) is None:
            return line.strip()
    return ""


def _plain(title: str) -> str:
    """A heading's words, without links, tags and emphasis."""
    words = _TAG.sub("", _LINK.sub(r"\1", _LINK.sub(r"\1", title)))
    return " ".join(_EMPHASIS.sub("", words).split())


LANGUAGE = Language(
    name="markdown",
    suffixes=(".md", ".markdown", ".mdx", ".mdc"),
    sections=_sections,
    is_code=False,
)
