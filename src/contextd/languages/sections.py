"""Outlines of texts that no grammar reads: from the lines on which their sections begin."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from contextd.domain.code import Import, Outline, Reference, Symbol, SymbolKind
from contextd.languages.language import LONGEST_SIGNATURE

LARGEST: Final = 1_000_000
"""Characters. Settings in a larger file than this are data, too."""
MOST: Final = 200
"""Settings with more sections than this are data: symbols that nobody looks for by name."""
_LONG: Final = 30
"""Sections of more lines than this may be split where a paragraph begins."""
_LONGEST_NAME: Final = 200
_DEEPEST: Final = 8


@dataclass(frozen=True, slots=True)
class Head:
    """A line that begins a section. Lines count from 1; 0 stands for none."""

    line: int
    name: str
    level: int = 1
    kind: SymbolKind = "section"
    signature: str = ""
    doc: str = ""
    container: str = ""
    first: int = 0
    """The line of its comment."""
    last: int = 0
    """Where it ends, if not before the next head."""
    rows: int = 1
    """How many lines the heading itself has."""


def lines_of(text: str) -> list[str]:
    """Line feeds end a line, as everywhere in the index; what Windows has before them is left out."""
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    return lines[:-1] if lines[-1] == "" else lines


def outline(lines: Sequence[str], heads: Sequence[Head]) -> Outline:
    """Heads are in the order of their lines; those of a deeper level are inside of the one before them."""
    return Outline(symbols=tuple(_symbols(lines, heads)))


def settings_outline(lines: Sequence[str], heads: Sequence[Head]) -> Outline:
    """A setting's signature is what stands before its value, if that goes on below."""
    if len(heads) > MOST:
        return Outline()
    signed = (
        replace(head, signature=head.signature or _before_value(lines[head.line - 1])) for head in heads
    )
    return outline(lines, list(signed))


def _before_value(line: str) -> str:
    bare = line.strip()
    short = bare.rstrip("{[( \t")
    return bare if short == bare else short.rstrip(":= \t")


def code_outline(
    lines: Sequence[str],
    heads: Sequence[Head],
    imports: Sequence[Import] = (),
    uses: Sequence[Reference] = (),
    package: str = "",
) -> Outline:
    symbols = tuple(_symbols(lines, heads))
    return Outline(package, symbols, tuple(_placed(uses, symbols)), tuple(imports))


def comment_above(lines: Sequence[str], line: int, marks: tuple[str, ...]) -> tuple[int, str]:
    """The line on which the comment right above a line begins, and the comment's text."""
    first = line
    while first > 1 and lines[first - 2].lstrip().startswith(marks):
        first -= 1
    if first == 1 and line > 1 and lines[0].startswith("#!"):
        first = 2
    letters = "".join(marks)
    above = (each.strip().removesuffix("*/") for each in lines[first - 1 : line - 1])
    texts = (each.lstrip(letters).strip() for each in above)
    return first, "\n".join(texts).strip()


def commented(lines: Sequence[str], head: Head, *marks: str) -> Head:
    """With the comment above it, whose lines begin with one of the marks."""
    first, doc = comment_above(lines, head.line, marks)
    return replace(head, first=first, doc=doc or head.doc)


def _symbols(lines: Sequence[str], heads: Sequence[Head]) -> Iterator[Symbol]:
    above: list[Head] = []
    named = [replace(head, name=head.name.strip()[:_LONGEST_NAME]) for head in heads if head.name.strip()]
    for at, head in enumerate(named):
        while above and above[-1].level >= head.level:
            above.pop()
        following = named[at + 1] if at + 1 < len(named) else None
        until = (following.first or following.line) - 1 if following is not None else len(lines)
        last = _trimmed(lines, head, head.last or until)
        yield Symbol(
            name=head.name,
            kind=head.kind,
            signature=(head.signature or lines[head.line - 1].strip())[:LONGEST_SIGNATURE],
            doc=head.doc,
            line=head.line,
            start_line=head.first or head.line,
            end_line=last,
            container=head.container or _path(head, above),
            borders=tuple(_borders(lines, head.line, last)) if last - head.line > _LONG else (),
        )
        above.append(head)


def _path(head: Head, above: Sequence[Head]) -> str:
    """The way to a section; what is inside of a type has the type's name, as in other languages."""
    near = above[-_DEEPEST:] if head.kind == "section" else above[-1:]
    return " / ".join(each.name for each in near)


def _trimmed(lines: Sequence[str], head: Head, last: int) -> int:
    least = min(head.line + head.rows - 1, len(lines))
    last = max(last, least)
    while last > least and not lines[last - 1].strip():
        last -= 1
    return last


def _borders(lines: Sequence[str], first: int, last: int) -> Iterator[int]:
    """Where a paragraph begins."""
    for line in range(first + 1, last + 1):
        if lines[line - 1].strip() and not lines[line - 2].strip():
            yield line


def _placed(uses: Sequence[Reference], symbols: Sequence[Symbol]) -> Iterator[Reference]:
    """Uses, in the order of their lines, each with the innermost symbol that it stands in."""
    open_: list[int] = []
    at = 0
    for use in uses:
        while at < len(symbols) and symbols[at].line <= use.line:
            open_.append(at)
            at += 1
        while open_ and symbols[open_[-1]].end_line < use.line:
            open_.pop()
        yield replace(use, within=open_[-1] if open_ else -1)
