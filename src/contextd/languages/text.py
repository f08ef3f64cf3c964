"""Plain text, reStructuredText, AsciiDoc and Org: sections where there are titles, otherwise none."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from contextd.domain.code import Outline
from contextd.languages.language import Language
from contextd.languages.sections import MOST, Head, lines_of, outline

_UNDERLINE: Final = re.compile(r"([=\-~^\"'`#*+.:_])\1{2,}[ \t]*$")
_NUMBERED: Final = re.compile(r"((?:\d{1,2}\.)*\d{1,2})\.?[ \t]+(?=\w)(.*[^.,;:!?\s])[ \t]*$")
_LONGEST_TITLE: Final = 90
_ASCIIDOC: Final = re.compile(r"(={1,6}|#{1,6})[ \t]+(\S.*)$")
_ASCIIDOC_BLOCK: Final = re.compile(r"(-{4,}|\.{4,}|={4,}|\*{4,}|\+{4,}|/{4,}|--|```)[ \t]*$")
_ORG: Final = re.compile(r"(\*+)[ \t]+(?:(?:TODO|DONE)[ \t]+)?(?:\[#\w\][ \t]+)?(\S.*)$")
_ORG_TAGS: Final = re.compile(r"[ \t]+:[\w@#%:]+:$")
_ORG_BLOCK: Final = re.compile(r"[ \t]*#\+(begin|end)_", re.IGNORECASE)


def _text(text: str) -> Outline:
    lines = lines_of(text)
    heads = list(_underlined(lines)) or list(_numbered(lines))
    return outline(lines, heads if len(heads) <= MOST else ())


def _underlined(lines: Sequence[str]) -> Iterator[Head]:
    """A mark's level is that of its first use, and another one where it stands above the title, too."""
    levels: dict[str, int] = {}
    for at in range(len(lines) - 1):
        mark = _UNDERLINE.match(lines[at + 1])
        if mark is None or not _is_title(lines, at, len(lines[at + 1].rstrip())):
            continue
        is_framed = at > 0 and lines[at - 1].rstrip() == lines[at + 1].rstrip()
        if not is_framed and (lines[at][0] in " \t" or (at > 0 and lines[at - 1].strip())):
            continue
        level = levels.setdefault(mark[1] * (2 if is_framed else 1), len(levels) + 1)
        title = lines[at].strip()
        first = at if is_framed else at + 1
        yield Head(at + 1, title, level, doc=_first_line(lines, at + 2), first=first, rows=2)


def _is_title(lines: Sequence[str], at: int, width: int) -> bool:
    title = lines[at].strip()
    fits = len(title) - 2 <= width and len(title) <= _LONGEST_TITLE
    return fits and any(letter.isalnum() for letter in title) and _UNDERLINE.match(title) is None


def _numbered(lines: Sequence[str]) -> Iterator[Head]:
    """`1.2 Getting started` between blank lines. Steps of a list mostly end as sentences do."""
    for at, line in enumerate(lines):
        found = _NUMBERED.match(line)
        if found is None or len(line) > _LONGEST_TITLE:
            continue
        before = lines[at - 1].strip() if at > 0 else ""
        after = lines[at + 1].strip() if at + 1 < len(lines) else ""
        if not before and not after:
            yield Head(at + 1, found[2], found[1].count(".") + 1, doc=_first_line(lines, at + 1))


def _asciidoc(text: str) -> Outline:
    lines = lines_of(text)
    return outline(lines, list(_marked(lines, _ASCIIDOC, list(_in_listing(lines)))))


def _in_listing(lines: Sequence[str]) -> Iterator[bool]:
    """Whether each line is in a listing, an example or the like; the lines around it count as inside."""
    opened = ""
    for line in lines:
        found = _ASCIIDOC_BLOCK.match(line)
        is_mark = found is not None and opened in ("", found[1])
        yield is_mark or bool(opened)
        if found is not None and is_mark:
            opened = "" if opened else found[1]


def _org(text: str) -> Outline:
    lines = lines_of(text)
    return outline(lines, list(_marked(lines, _ORG, list(_in_org_block(lines)))))


def _in_org_block(lines: Sequence[str]) -> Iterator[bool]:
    is_inside = False
    for line in lines:
        found = _ORG_BLOCK.match(line)
        is_inside = is_inside if found is None else found[1].lower() == "begin"
        yield is_inside or found is not None


def _marked(lines: Sequence[str], heading: re.Pattern[str], aside: Sequence[bool]) -> Iterator[Head]:
    """Headings that begin with as many marks as they are deep."""
    for at, line in enumerate(lines):
        if not aside[at] and (found := heading.match(line)) is not None:
            title = _ORG_TAGS.sub("", found[2].strip())
            yield Head(at + 1, title, len(found[1]), doc=_doc(lines, at + 1, heading, aside))


def _doc(lines: Sequence[str], start: int, heading: re.Pattern[str], aside: Sequence[bool]) -> str:
    """The first line below a heading that is a sentence."""
    for at in range(start, len(lines)):
        if not aside[at] and heading.match(lines[at]):
            return ""
        if not aside[at] and _has_words(lines[at]):
            return lines[at].strip()
    return ""


def _first_line(lines: Sequence[str], start: int) -> str:
    """The first line below a title that is a sentence, if it is not the next title."""
    for at in range(start, len(lines)):
        if _has_words(lines[at]):
            is_title = at + 1 < len(lines) and _UNDERLINE.match(lines[at + 1])
            return "" if is_title else lines[at].strip()
    return ""


def _has_words(line: str) -> bool:
    """And is none of the marks for attributes, directives and blocks."""
    bare = line.strip()
    return not bare.startswith((":", ".", "#+", "[", "//")) and any(letter.isalnum() for letter in bare)


LANGUAGES = (
    Language(
        name="text",
        suffixes=(".txt", ".text", ".rst"),
        names=(
            "README",
            "CHANGELOG",
            "CHANGES",
            "CONTRIBUTING",
            "HACKING",
            "HISTORY",
            "INSTALL",
            "NEWS",
            "TODO",
            "UPGRADING",
        ),
        sections=_text,
        is_code=False,
    ),
    Language(name="asciidoc", suffixes=(".adoc", ".asciidoc"), sections=_asciidoc, is_code=False),
    Language(name="org", suffixes=(".org",), sections=_org, is_code=False),
)
