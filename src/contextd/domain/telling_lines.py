"""Which lines of a long text say what went wrong or how it ended.

Any text may come here, also source code and prose, where next to nothing should be marked: hence whole
shapes of lines, read from their beginning, and not words. The shapes are data, see `telling_shapes.py`.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Final

from contextd.domain.error_types import names_error
from contextd.domain.log_heads import read_lines
from contextd.domain.telling_shapes import HINT, SHAPES

FOLDED_AT: Final = 200
"""A piece of this many characters without a line end goes on in the next one."""
_MOST_PIECES: Final = 10
"""Of a folded line, as much is read."""
_LONGEST_TRACEBACK: Final = 500
_NEAR: Final = 3
"""So many lines below a heading, blank ones counted, its body may begin."""


def telling(lines: Sequence[str]) -> list[bool]:
    """For each line, as `cutting.pieces` gives them, whether it says what went wrong or how it ended.

    A folded line is judged as a whole. Of a telling one the first piece is marked, and the piece where
    that ends which made it telling.
    """
    text = _Text(lines)
    for first, count in _candidates(lines):
        text.judge(first, count)
    return text.marks


def _candidates(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Where any shape could fit at all: the first piece of the line, and how many pieces are read."""
    search = _shapes().hint.search
    folded = 0
    for at, piece in enumerate(lines):
        if len(piece) >= FOLDED_AT and piece[-1] != "\n":
            folded += 1
        elif folded:
            yield at - folded, min(folded + 1, _MOST_PIECES)
            folded = 0
        elif search(piece):
            yield at, 1
    if folded:
        yield len(lines) - folded, min(folded, _MOST_PIECES)


# --- one line -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Found:
    kind: str
    end: int
    """Up to where the line was needed to tell, in characters."""


@dataclass(frozen=True, slots=True)
class _Shapes:
    hint: re.Pattern[str]
    plain: re.Pattern[str]
    timed: re.Pattern[str]


@cache
def _shapes() -> _Shapes:
    by_kind: dict[str, list[str]] = {}
    for shape in SHAPES:
        by_kind.setdefault(shape.kind, []).append(shape.pattern)
    # What must name an exception comes last: the others need no second look.
    kinds = sorted(by_kind, key=lambda kind: kind == "exception")
    groups = {kind: f"(?P<{kind}>{'|'.join(by_kind[kind])})" for kind in kinds}
    plain = "|".join(group for kind, group in groups.items() if kind != "timed")
    return _Shapes(re.compile(HINT), re.compile(plain), re.compile("|".join(groups.values())))


_ANSI: Final = re.compile(r"\x1b\[[0-9;?]{0,20}[A-Za-z]")
_HEADED: Final = re.compile(r"\s*+(?:[\[#<:(]|.{0,80}?(?:\d:\d\d|\d{9}|\|))")
"""Reading the head of a line takes longer than this look, and few lines have one."""
_CLOCK: Final = re.compile(r"\d:\d\d|\d{9}")
_WARNS: Final = re.compile(r"\b(?:WARN|[Ww]arn)")
_SPEAKS: Final = re.compile(r"\b(?:INFO|[Ii]nfo|NOTICE|[Nn]otice|DEBUG|[Dd]ebug|TRACE|[Tt]race)\b")
"""A level that is none of trouble: what follows it may speak of errors."""


def _read(line: str) -> _Found | None:
    shapes = _shapes()
    plain = _visible(line)
    found = _fitting(shapes.plain, plain)
    if found is not None or not _HEADED.match(plain):
        return found
    read = read_lines(plain)
    bare = read[0].text if read else plain
    head = plain.lstrip()[: -len(bare) or None]
    if not head or not plain.endswith(bare) or _WARNS.search(head):
        return None
    timed = _CLOCK.search(head) is not None and _SPEAKS.search(head) is None
    if timed and read[0].loud:
        return _Found("alone", len(head))
    return _fitting(shapes.timed if timed else shapes.plain, bare, len(head))


def _fitting(pattern: re.Pattern[str], line: str, before: int = 0) -> _Found | None:
    found = pattern.match(line)
    if found is None or (found.lastgroup == "exception" and not names_error(line[: found.end()])):
        return None
    return _Found(found.lastgroup or "", before + found.end())


def _visible(line: str) -> str:
    """Without colours, and without what a progress bar has written over."""
    plain = _ANSI.sub("", line) if "\x1b" in line else line
    plain = plain.rstrip()
    return plain.rpartition("\r")[2] if "\r" in plain else plain


# --- in its place ---------------------------------------------------------------------

_OF_A_WARNING: Final = re.compile(r"\s*(?:\S{1,80} )?(?:warning|note|help)\b|\s*= ")
_SUM: Final = re.compile(
    r"^ {1,12}\d{1,7} failing$|^\d{1,7} (?:examples?|tests?), [1-9]\d{0,6} failures?|^FAILURES!"
    r"|^There (?:was|were) \d{1,7} (?:fail|err)",
    re.MULTILINE,
)


class _Text:
    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self.marks = [False] * len(lines)

    def judge(self, first: int, count: int) -> None:
        line = self._lines[first] if count == 1 else "".join(self._lines[first : first + count])
        found = _read(line)
        if found is None or not self._counts(first, found.kind):
            return
        self.marks[first] = True
        self.marks[first + min(found.end // FOLDED_AT, count - 1)] = True
        if found.kind == "heading":
            self._mark_body(first + count)
        elif found.kind == "traceback":
            self._mark_end(first)
        elif found.kind == "place" and first:
            self.marks[first - 1] = bool(self._lines[first - 1].strip())

    def _counts(self, at: int, kind: str) -> bool:
        if kind == "place":
            return at == 0 or _OF_A_WARNING.match(_visible(self._lines[at - 1])) is None
        return kind != "numbered" or self._sums_up_failures

    @cached_property
    def _sums_up_failures(self) -> bool:
        return _SUM.search(_ANSI.sub("", "".join(self._lines))) is not None

    def _mark_body(self, start: int) -> None:
        for at in range(start, min(start + _NEAR, len(self._lines))):
            if self._lines[at].strip():
                self.marks[at] = True
                return

    def _mark_end(self, first: int) -> None:
        """Below its head a traceback is indented, until the exception stands where the head began.

        Columns tell this also where each line has a log's head before it, or a tree of exceptions.
        """
        head = _visible(self._lines[first])
        column = head.rfind("Exception Group")
        column = column if column >= 0 else head.find("Traceback")
        for at in range(first + 1, min(first + _LONGEST_TRACEBACK, len(self._lines))):
            beginning = _visible(self._lines[at])[column : column + 1]
            if beginning.strip():
                self.marks[at] = True
                return
